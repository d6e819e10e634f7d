"""Checks of ensembles of tables of probabilities; see `runner.Check`."""

import math
import random
from collections import defaultdict

from onmt_entmax.search import (
    ListedSequences,
    SearchConfig,
    average_sequences,
    beam_search,
)
from onmt_entmax.search.certificate import Level
from tests.faults.claims import check_average, check_result
from tests.faults.draws import STOPS, draw_alpha, draw_config, draw_table
from tests.search.enumeration import enumerate_support
from tests.search.table_steppers import ensemble_of
from tests.search.tables import Table

_NEXT_SEED = 11  # between members, so that models of neighbouring seeds differ
_SEQUENCE_LENGTH = 3  # up to which all sequences of a table are listed


def check_token_ensemble(seed: int, rng: random.Random) -> list[Level]:
    """Check a beam search by the mean of next-token probabilities."""
    members = rng.randint(2, 3)
    stepper = ensemble_of(
        [Table(seed + _NEXT_SEED * i, draw_alpha(rng), 4) for i in range(members)]
    )
    max_length = rng.choice([0, 1, 2, 3])
    support = enumerate_support(stepper, [None], max_length)
    config = draw_config(rng, max_length)
    (result,) = beam_search(stepper, [None], config)
    return [check_result(result, support, config, tolerance=1e-6)]


def check_sequence_ensemble(seed: int, rng: random.Random) -> list[Level]:
    """Check the mean of sequence probabilities of models with other vocabularies."""
    parts = [rng.randint(1, 3) for _ in range(rng.randint(2, 3))]
    weights = [part / sum(parts) for part in parts]
    listed: list[ListedSequences] = []
    truth: dict[str, float] = defaultdict(float)
    most_beyond = 0.0
    for member, weight in enumerate(weights):
        table, stepper, _ = draw_table(seed + _NEXT_SEED * member, rng)
        config = SearchConfig(
            beam_size=rng.randint(1, 10),
            n_best=0,
            max_length=_SEQUENCE_LENGTH,
            stop=rng.choice(STOPS),
        )
        (result,) = beam_search(stepper, [table], config)
        probabilities = {str(h.tokens): h.prob for h in result.hypotheses}
        listed.append(ListedSequences(probabilities, result.certificate.bound))
        support = enumerate_support(stepper, [table], _SEQUENCE_LENGTH)
        for tokens, log_prob in support.sequences.items():
            truth[str(tokens)] += weight * math.exp(log_prob)
        most_beyond += weight * math.exp(max(support.prefixes.values(), default=-math.inf))
    return [check_average(average_sequences(listed, weights), truth, most_beyond)]
