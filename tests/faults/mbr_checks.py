"""Checks of decisions by minimum Bayes risk of random models; see `runner.Check`."""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from onmt_entmax.report.combine import combined
from onmt_entmax.report.mbr import decide_record
from onmt_entmax.search import (
    Request,
    SearchConfig,
    SearchResult,
    Stepper,
    beam_search,
    exact_search,
)
from onmt_entmax.search.utilities import UTILITIES, Utility
from tests.faults.decision_claims import LETTERS, Truth, check_decision
from tests.faults.draws import (
    ENSEMBLE_SENTENCE,
    MASSES,
    Sentence,
    draw_alpha,
    draw_network,
    draw_table,
    member_seed,
)
from tests.search.enumeration import Tokens, enumerate_support
from tests.search.networks import sentences
from tests.search.table_steppers import ensemble_of
from tests.search.tables import Table

_EXACT_SEARCHES = 0.3  # share of the searches; the others are by beam
# Limits of the length, up to which all outputs can be listed; networks have more tokens.
_TABLE_LENGTHS = (1, 2, 3)
_NETWORK_LENGTHS = (1, 2)
_ENSEMBLE_VOCABULARY_SIZE = 4  # the start and end symbols, and two words
_WEIGHTS = (0.4, 0.6)  # of the two models whose records are combined
_COMBINED_LENGTH = 2  # tokens of their longest output


def _text_of(tokens: Tokens) -> str:
    """Return tokens as a text of letters, by which chrF and edit distance compare outputs."""
    return " ".join(LETTERS[token] for token in tokens)


def _truth_of(stepper: Stepper, sentence: Sentence, max_length: int) -> Truth:
    """Return the distribution over the outputs for a sentence, by enumeration."""
    support = enumerate_support(stepper, sentence, max_length)
    probabilities = {_text_of(tokens): math.exp(p) for tokens, p in support.sequences.items()}
    return Truth(probabilities, sum(map(math.exp, support.prefixes.values())))


def _record_of(result: SearchResult) -> dict[str, Any]:
    """Return the keys of a report's record that decisions read."""
    certificate = result.certificate
    return {
        "id": 0,
        "source": "s",
        "certificate": certificate.level,
        "bound": certificate.bound,
        "mass": certificate.mass,
        "excluded": min(certificate.excluded, 1.0),
        "finished": result.finished,
        "hypotheses": [{"text": _text_of(h.tokens), "prob": h.prob} for h in result.hypotheses],
    }


def _searched_record(
    stepper: Stepper, sentence: Sentence, max_length: int, rng: random.Random
) -> dict[str, Any]:
    """Return the record of a random search that lists all it finds."""
    if rng.random() < _EXACT_SEARCHES:
        mass = rng.choice(MASSES)
        config = SearchConfig(n_best=0, max_length=max_length)
        return _record_of(exact_search(stepper, Request(sentence), config, mass=mass))
    config = SearchConfig(
        beam_size=rng.randint(1, 10),
        n_best=rng.randint(1, 5),
        max_length=max_length,
        all_found=True,
    )
    (result,) = beam_search(stepper, sentence, config)
    return _record_of(result)


def _check_utilities(
    stepper: Stepper, sentence: Sentence, max_length: int, rng: random.Random
) -> list[str]:
    """Check the decision of each utility about one search.

    Returns:
        A text for each utility: its name and the level of its decision.
    """
    truth = _truth_of(stepper, sentence, max_length)
    record = _searched_record(stepper, sentence, max_length, rng)
    return [
        f"{utility} {check_decision(decide_record(utility, record), truth, rng)}"
        for utility in UTILITIES
    ]


def check_table_decisions(seed: int, rng: random.Random) -> list[str]:
    """Check decisions about a table."""
    table, stepper, _ = draw_table(seed, rng)
    return _check_utilities(stepper, [table], rng.choice(_TABLE_LENGTHS), rng)


def check_network_decisions(seed: int, rng: random.Random) -> list[str]:
    """Check decisions about a network."""
    stepper = draw_network(seed, rng).stepper
    (sentence,) = sentences(1, seed)
    return _check_utilities(stepper, sentence, rng.choice(_NETWORK_LENGTHS), rng)


def check_ensemble_decisions(seed: int, rng: random.Random) -> list[str]:
    """Check decisions about an ensemble of next tokens."""
    members = [
        Table(member_seed(seed, i), draw_alpha(rng), _ENSEMBLE_VOCABULARY_SIZE) for i in range(2)
    ]
    max_length = rng.choice(_TABLE_LENGTHS)
    return _check_utilities(ensemble_of(members), ENSEMBLE_SENTENCE, max_length, rng)


def check_combined_decisions(seed: int, rng: random.Random) -> list[str]:
    """Check a decision of `combine`, about the mean of two models' sequence probabilities."""
    truths, records = [], []
    for member in range(len(_WEIGHTS)):
        table, stepper, _ = draw_table(member_seed(seed, member), rng)
        truths.append(_truth_of(stepper, [table], _COMBINED_LENGTH))
        records.append(_searched_record(stepper, [table], _COMBINED_LENGTH, rng))
    record = combined(records, _WEIGHTS)
    utility: Utility = rng.choice(UTILITIES)
    decision = decide_record(utility, record)
    return [check_decision(decision, _average_truth(truths, _WEIGHTS), rng)]


def _average_truth(truths: Sequence[Truth], weights: Sequence[float]) -> Truth:
    """Return the weighted mean of distributions."""
    probabilities: dict[str, float] = defaultdict(float)
    open_mass = 0.0
    for truth, weight in zip(truths, weights, strict=True):
        open_mass += weight * truth.open_mass
        for text, probability in truth.probabilities.items():
            probabilities[text] += weight * probability
    return Truth(probabilities, open_mass)
