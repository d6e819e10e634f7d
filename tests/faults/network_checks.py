"""Checks of searches of networks with random weights; see `runner.Check`.

Each lists all outputs of a drawn network, searches it, and compares the result with the list.
"""

import math
import random
from itertools import islice
from typing import NamedTuple

from onmt_entmax.data.batch import Batch
from onmt_entmax.search import (
    EnsembleStepper,
    Penalties,
    Request,
    SearchConfig,
    beam_search,
    exact_search,
    score_targets,
)
from onmt_entmax.search.certificate import Level
from tests.faults.claims import check_penalised_result, check_result
from tests.faults.definitions import allowed_part, most_excluded, scores_of
from tests.faults.draws import (
    DrawnNetwork,
    constraints_on,
    draw_config,
    draw_network,
    draw_reward,
    member_seed,
)
from tests.search.checks import check
from tests.search.enumeration import EnumeratedSupport, enumerate_support
from tests.search.networks import sentences, together

# Of a network's tokens, 0 is the unknown token, 3 the end symbol, 4 and 5 are words.
CONSTRAINTS = constraints_on(ignored=4, banned=0)
PENALTIES = (Penalties("wu", alpha=0.8), Penalties("avg"))
FORCED = ((), (4,), (5, 4))  # beginnings that outputs must have
# Below this tolerance (float64, without the mean encoder) certificates do not depend on the batch.
_EXACT = 1e-5
# Tokens of an output. Networks have six tokens, so up to 6 ** 3 outputs are enumerated.
_LENGTHS = (1, 2, 3)
_OPTIONS_LENGTH = 3
_SCORED = 3  # outputs of a network by forced decoding, each of which takes a forward pass
_ENSEMBLE_LENGTH = 2


class EnumeratedSentence(NamedTuple):
    """A sentence, and all that a search of it may find."""

    drawn: DrawnNetwork
    batch: Batch
    """The sentence alone."""
    max_length: int
    support: EnumeratedSupport


def check_networks(seed: int, rng: random.Random) -> list[Level]:
    """Check a beam search of several sentences, together and each alone."""
    stepper, tolerance = draw_network(seed, rng)
    max_length = rng.choice(_LENGTHS)
    batches = sentences(rng.randint(1, 3), seed)
    config = draw_config(rng, max_length)
    results = beam_search(stepper, together(batches), config)
    levels: list[Level] = []
    for batch, result in zip(batches, results, strict=True):
        support = enumerate_support(stepper, batch, max_length)
        (alone,) = beam_search(stepper, batch, config)
        levels.append(check_result(alone, support, config, tolerance))
        check_result(result, support, config, tolerance)
        if tolerance < _EXACT:
            assert result.certificate.level == alone.certificate.level
            assert [h.tokens for h in result.hypotheses] == [h.tokens for h in alone.hypotheses]
    return levels


def check_network_options(seed: int, rng: random.Random) -> list[Level]:
    """Check forced decoding, then a search under penalties or constraints."""
    drawn = draw_network(seed, rng)
    (batch,) = sentences(1, seed)
    support = enumerate_support(drawn.stepper, batch, _OPTIONS_LENGTH)
    sentence = EnumeratedSentence(drawn, batch, _OPTIONS_LENGTH, support)
    _check_forced_decoding(sentence)
    check_search = _check_penalties if rng.random() < 0.5 else _check_constraints
    return [check_search(sentence, rng)]


def _check_forced_decoding(sentence: EnumeratedSentence) -> None:
    """Check that forced decoding gives enumerated outputs the same log-probabilities.

    A network that ends no output within the length limit has none to check.
    """
    drawn, batch, _, support = sentence
    for tokens, log_prob in islice(support.sequences.items(), _SCORED):
        (scored,) = score_targets(drawn.stepper, batch, [tokens])
        assert math.isclose(scored.log_prob, log_prob, rel_tol=0, abs_tol=drawn.tolerance)


def _check_penalties(sentence: EnumeratedSentence, rng: random.Random) -> Level:
    """Check a beam search with a length penalty or a length reward."""
    drawn, batch, max_length, support = sentence
    penalties = rng.choice([*PENALTIES, draw_reward(rng)])
    config = SearchConfig(
        beam_size=rng.randint(1, 10), n_best=1, max_length=max_length, penalties=penalties
    )
    scores = scores_of(support, penalties, source_length=int(batch.source_lengths[0]))
    (result,) = beam_search(drawn.stepper, batch, config)
    return check_penalised_result(result, scores, is_cut=bool(support.prefixes))


def _check_constraints(sentence: EnumeratedSentence, rng: random.Random) -> Level:
    """Check a beam search under constraints, perhaps with a forced prefix."""
    drawn, batch, max_length, support = sentence
    constraints = rng.choice(CONSTRAINTS)
    forced = rng.choice(FORCED)
    config = draw_config(rng, max_length, constraints=constraints)
    (result,) = beam_search(drawn.stepper, batch, config, [forced])
    allowed = allowed_part(support, constraints, forced)
    ruled_out = most_excluded(support, allowed)
    return check_result(result, allowed, config, drawn.tolerance, ruled_out)


def check_network_ensemble(seed: int, rng: random.Random) -> list[Level]:
    """Check an ensemble of two networks of any kinds, by beam and by exact search."""
    members = [draw_network(member_seed(seed, i), rng) for i in range(2)]
    stepper = EnsembleStepper([member.stepper for member in members])
    tolerance = max(member.tolerance for member in members)
    (batch,) = sentences(1, seed)
    support = enumerate_support(stepper, batch, _ENSEMBLE_LENGTH)
    config = draw_config(rng, _ENSEMBLE_LENGTH)
    (by_beam,) = beam_search(stepper, batch, config)
    check_result(by_beam, support, config, tolerance)
    exact = exact_search(stepper, Request(batch), config)
    check(exact, support, config, tolerance)
    return [by_beam.certificate.level, exact.certificate.level]
