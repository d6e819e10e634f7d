"""Checks of searches for outputs that satisfy a random expression; see `runner.Check`."""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.search import (
    Budget,
    EnsembleStepper,
    Request,
    Stepper,
    beam_search,
    exact_search,
)
from onmt_entmax.search.automaton import VIOLATED, Automaton
from onmt_entmax.search.certificate import Level
from tests.faults.claims import check_satisfied
from tests.faults.definitions import most_excluded
from tests.faults.draws import (
    ENOUGH_EXPANSIONS,
    ENSEMBLE_SENTENCE,
    FEW_EXPANSIONS,
    MASSES,
    TABLE_TOLERANCES,
    Sentence,
    draw_alpha,
    draw_config,
    draw_network,
    member_seed,
)
from tests.search.automata import after, compiled
from tests.search.checks import check
from tests.search.enumeration import ALL_EXCLUDED, EnumeratedSupport, enumerate_support
from tests.search.expressions import Matcher, random_expression
from tests.search.networks import sentences
from tests.search.table_steppers import TableStepper, ensemble_of
from tests.search.tables import BOS, EOS, Table

_MEMBERS = (1, 1, 2)  # models of a search: more often one
_WITH_EXPRESSION = 0.8  # share of the sentences in a batch
_SHARED = 0.3  # share of the batches with one automaton for all sentences
_NETWORK_WORDS = (0, 4, 5)  # `<unk>` and two words
_BATCH_WORDS = (2, 3, 4)  # all tokens of a table but its start and end symbols


class DrawnSentence(NamedTuple):
    """A sentence of a random model, which is small enough to list all outputs."""

    stepper: Stepper
    sentence: Sentence
    """The only one of its batch."""
    words: Sequence[int]
    """Tokens that an expression may name."""
    max_length: int
    """Tokens of the longest output."""
    tolerance: float
    """How far log-probabilities may be from the enumerated ones."""


def check_table_expressions(seed: int, rng: random.Random) -> list[Level]:
    """Check searches of one table, or of an ensemble of two."""
    tokens = rng.randint(4, 6)
    dtype = rng.choice([torch.float64, torch.float32])
    members = rng.choice(_MEMBERS)
    tables = [Table(member_seed(seed, i), draw_alpha(rng), tokens) for i in range(members)]
    excluded = rng.choice([(), (BOS,)])  # without any, outputs may have all tokens of the table
    stepper: Stepper = TableStepper(tokens, excluded, dtype)
    sentence: Sentence = tables
    if members > 1:
        stepper, sentence = ensemble_of(tables), ENSEMBLE_SENTENCE
    words = [token for token in range(tokens) if token not in (BOS, EOS)]
    max_length = rng.choice([1, 2, 3, 4])
    drawn = DrawnSentence(stepper, sentence, words, max_length, TABLE_TOLERANCES[dtype])
    return _check_expression(drawn, rng)


def check_network_expressions(seed: int, rng: random.Random) -> list[Level]:
    """Check searches of one network, or of an ensemble of two."""
    members = [draw_network(member_seed(seed, i), rng) for i in range(rng.choice(_MEMBERS))]
    stepper: Stepper = members[0].stepper
    if len(members) > 1:
        stepper = EnsembleStepper([member.stepper for member in members])
    tolerance = max(member.tolerance for member in members)
    (sentence,) = sentences(1, seed)
    max_length = rng.choice([1, 2, 3])
    drawn = DrawnSentence(stepper, sentence, _NETWORK_WORDS, max_length, tolerance)
    return _check_expression(drawn, rng)


def _check_expression(drawn: DrawnSentence, rng: random.Random) -> list[Level]:
    """Search for outputs that satisfy a random expression: by beam, and exactly.

    Args:
        drawn: what is searched.
        rng: draws the expression and the request.
    """
    stepper, sentence, words, max_length, tolerance = drawn
    expression, matches = random_expression(rng, words)
    automaton = compiled(expression, words, stepper.eos)
    support = enumerate_support(stepper, sentence, max_length)
    allowed = _satisfying_part(support, automaton, matches)
    config = draw_config(rng, max_length)
    budget = Budget(
        expansions=rng.choice([FEW_EXPANSIONS, ENOUGH_EXPANSIONS]), rows=rng.choice([1, 3, 64])
    )
    mass = rng.choice(MASSES)
    (by_beam,) = beam_search(stepper, sentence, config, automata=[automaton])
    request = Request(sentence, automata=[automaton])
    exact = exact_search(stepper, request, config, budget, mass)
    ruled_out = most_excluded(support, allowed)
    for result in (by_beam, exact):
        check(result, allowed, config, tolerance, ruled_out)
        check_satisfied(result, support, matches, tolerance)
    lists_all = config.n_best == 0 and budget.expansions > FEW_EXPANSIONS
    if lists_all and not support.prefixes:
        share = mass * sum(map(math.exp, allowed.sequences.values()))
        assert exact.certificate.mass >= share - tolerance
    return [by_beam.certificate.level, exact.certificate.level]


def _satisfying_part(
    support: EnumeratedSupport, automaton: Automaton, matches: Matcher
) -> EnumeratedSupport:
    """Return the part of the support that satisfies an expression, or may once it is complete."""
    return EnumeratedSupport(
        sequences={
            tokens: log_prob for tokens, log_prob in support.sequences.items() if matches(tokens)
        },
        prefixes={
            tokens: log_prob
            for tokens, log_prob in support.prefixes.items()
            if after(automaton, tokens) != VIOLATED
        },
        excluded=ALL_EXCLUDED,  # `most_excluded` returns what the bound must cover instead
    )


def check_batch_of_expressions(seed: int, rng: random.Random) -> list[Level]:
    """Check that sentences of a batch have the results that each has alone.

    Each sentence has an automaton of its own or none, or all of them share one.
    """
    tables = [Table(seed + i, draw_alpha(rng)) for i in range(rng.randint(2, 5))]
    automata = [
        compiled(random_expression(rng, _BATCH_WORDS)[0], _BATCH_WORDS, EOS)
        if rng.random() < _WITH_EXPRESSION
        else None
        for _ in tables
    ]
    if rng.random() < _SHARED:
        automata = [automata[0]] * len(tables)
    config = draw_config(rng, max_length=3)
    stepper = TableStepper()
    together = beam_search(stepper, tables, config, automata=automata)
    for table, automaton, result in zip(tables, automata, together, strict=True):
        (alone,) = beam_search(stepper, [table], config, automata=[automaton])
        assert [h.tokens for h in alone.hypotheses] == [h.tokens for h in result.hypotheses]
        expected, certificate = alone.certificate, result.certificate
        assert certificate.level == expected.level
        assert certificate.proven == expected.proven
        assert certificate.bound == expected.bound
        assert certificate.satisfied == pytest.approx(expected.satisfied, abs=1e-12)
    return [result.certificate.level for result in together]
