"""Checks of ensembles of tables of probabilities; see `runner.Check`.

An ensemble of next tokens averages the distributions of its members at each step, and is searched
as one model.

An ensemble of sequences averages the probabilities of whole sequences that the members' searches
list. A search need not list all, so the average is not known exactly. The ensemble claims that

- the average probability of a listed sequence is at least the one that it has in the list, and
  higher by at most the bound;
- no other sequence, unlisted or longer than the limit of the searches, has more than the bound;
- its level, its gap and its proven ranks hold for the true averages.
"""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from onmt_entmax.search import (
    ListedSequences,
    SearchConfig,
    average_sequences,
    beam_search,
)
from onmt_entmax.search.certificate import Level
from tests.faults.average_claims import SequenceDistribution, check_average
from tests.faults.claims import check_result
from tests.faults.draws import (
    ENSEMBLE_SENTENCE,
    STOPS,
    draw_alpha,
    draw_config,
    draw_table,
    member_seed,
)
from tests.search.enumeration import EnumeratedSupport, Tokens, enumerate_support
from tests.search.table_steppers import ensemble_of
from tests.search.tables import Table

_VOCABULARY_SIZE = 4  # the start and end symbols, and two words
_SEQUENCE_LENGTH = 3  # tokens of the longest sequence that an ensemble of sequences lists


def check_token_ensemble(seed: int, rng: random.Random) -> list[Level]:
    """Check a beam search of an ensemble of next tokens."""
    stepper = ensemble_of(
        [
            Table(member_seed(seed, member), draw_alpha(rng), _VOCABULARY_SIZE)
            for member in range(rng.randint(2, 3))
        ]
    )
    max_length = rng.choice([0, 1, 2, 3])
    support = enumerate_support(stepper, ENSEMBLE_SENTENCE, max_length)
    config = draw_config(rng, max_length)
    (result,) = beam_search(stepper, ENSEMBLE_SENTENCE, config)
    return [check_result(result, support, config, tolerance=1e-6)]


class SearchedMember(NamedTuple):
    """A member of an ensemble of sequences."""

    listed: ListedSequences
    """What its search found and proved."""
    truth: SequenceDistribution


def check_sequence_ensemble(seed: int, rng: random.Random) -> list[Level]:
    """Check an ensemble of sequences, of members that may have different vocabularies."""
    parts = [rng.randint(1, 3) for _ in range(rng.randint(2, 3))]
    weights = [part / sum(parts) for part in parts]
    members = [_search_member(member_seed(seed, i), rng) for i in range(len(weights))]
    average = average_sequences([member.listed for member in members], weights)
    truth = _average_distribution([member.truth for member in members], weights)
    return [check_average(average, truth)]


def _search_member(seed: int, rng: random.Random) -> SearchedMember:
    """Draw a table, search it at random, and enumerate it."""
    table, stepper, _ = draw_table(seed, rng)
    config = SearchConfig(
        beam_size=rng.randint(1, 10),
        n_best=0,  # all that are found
        max_length=_SEQUENCE_LENGTH,
        stop=rng.choice(STOPS),
    )
    (result,) = beam_search(stepper, [table], config)
    listed = {_text_of(hypothesis.tokens): hypothesis.prob for hypothesis in result.hypotheses}
    support = enumerate_support(stepper, [table], _SEQUENCE_LENGTH)
    return SearchedMember(
        ListedSequences(listed, rest=result.certificate.bound), _distribution(support)
    )


def _text_of(tokens: Tokens) -> str:
    """Return the text by which ensembles compare the outputs of their members."""
    return " ".join(map(str, tokens))


def _distribution(support: EnumeratedSupport) -> SequenceDistribution:
    """Return the distribution over the texts of a support."""
    return SequenceDistribution(
        {_text_of(tokens): math.exp(p) for tokens, p in support.sequences.items()},
        most_beyond=math.exp(max(support.prefixes.values(), default=-math.inf)),
    )


def _average_distribution(
    parts: Sequence[SequenceDistribution], weights: Sequence[float]
) -> SequenceDistribution:
    """Return the weighted mean of distributions; weights sum to 1.

    Its `most_beyond` is the mean of theirs. Their prefixes may differ, so the mean of any one
    prefix may be less.
    """
    probabilities: dict[str, float] = defaultdict(float)
    for part, weight in zip(parts, weights, strict=True):
        for text, probability in part.probabilities.items():
            probabilities[text] += weight * probability
    most_beyond = sum(
        weight * part.most_beyond for part, weight in zip(parts, weights, strict=True)
    )
    return SequenceDistribution(probabilities, most_beyond)
