"""Checks of searches for outputs that satisfy a random expression; see `runner.Check`."""

import math
import random
from typing import Any

import pytest
import torch

from onmt_entmax.search import Budget, EnsembleStepper, Stepper, beam_search, exact_search
from onmt_entmax.search.certificate import Level
from tests.faults.definitions import most_excluded
from tests.faults.draws import (
    ENOUGH_EXPANSIONS,
    FEW_EXPANSIONS,
    draw_alpha,
    draw_config,
    draw_network,
)
from tests.search.automata import check_probability, compiled, satisfying
from tests.search.checks import check
from tests.search.enumeration import enumerate_support
from tests.search.expressions import random_expression
from tests.search.networks import sentences
from tests.search.tables import BOS, EOS, Table, TableStepper, ensemble_of


def check_table(seed: int, rng: random.Random) -> list[Level]:
    """Check searches of one table, or of an ensemble of two."""
    tokens = rng.randint(4, 6)
    dtype = rng.choice([torch.float64, torch.float32])
    members = rng.choice([1, 1, 2])
    tables = [Table(seed + i, draw_alpha(rng), tokens) for i in range(members)]
    excluded = rng.choice([(), (BOS,)])  # without any, all that the list has may be an output
    stepper: Stepper = TableStepper(tokens, excluded, dtype)
    batch: list[Any] = tables
    if members > 1:
        stepper, batch = ensemble_of(tables), [None]
    words = [token for token in range(tokens) if token not in (BOS, EOS)]
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    return _check_expression(stepper, batch, rng, words, rng.choice([1, 2, 3, 4]), tolerance)


def check_network(seed: int, rng: random.Random) -> list[Level]:
    """Check searches of one network, or of an ensemble of two."""
    members = [draw_network(seed + 13 * i, rng) for i in range(rng.choice([1, 1, 2]))]
    stepper: Stepper = members[0].stepper
    if len(members) > 1:
        stepper = EnsembleStepper([member.stepper for member in members])
    tolerance = max(member.tolerance for member in members)
    (batch,) = sentences(1, seed)
    return _check_expression(stepper, batch, rng, [0, 4, 5], rng.choice([1, 2, 3]), tolerance)


def _check_expression(
    stepper: Stepper,
    batch: Any,
    rng: random.Random,
    words: list[int],
    max_length: int,
    tolerance: float,
) -> list[Level]:
    """Search one sentence for outputs that satisfy a random expression: by beam, and exactly.

    Args:
        stepper: the model.
        batch: the sentence.
        rng: draws the expression and the request.
        words: tokens that the expression may name.
        max_length: of an output.
        tolerance: by which log-probabilities may differ.
    """
    expression, matches = random_expression(rng, words)
    automaton = compiled(expression, words, stepper.eos)
    support = enumerate_support(stepper, batch, max_length)
    allowed = satisfying(support, automaton, matches)
    config = draw_config(rng, max_length)
    budget = Budget(
        expansions=rng.choice([FEW_EXPANSIONS, ENOUGH_EXPANSIONS]), rows=rng.choice([1, 3, 64])
    )
    mass = rng.choice([1.0, 0.9, 0.5])
    (by_beam,) = beam_search(stepper, batch, config, automata=[automaton])
    exact = exact_search(stepper, batch, config, budget, mass=mass, automaton=automaton)
    ruled_out = most_excluded(support, allowed)
    for result in (by_beam, exact):
        check(result, allowed, config, tolerance, ruled_out)
        check_probability(result, support, matches, tolerance)
    if config.n_best == 0 and budget.expansions > FEW_EXPANSIONS and not support.prefixes:
        share = mass * sum(map(math.exp, allowed.sequences.values()))
        assert exact.certificate.mass >= share - tolerance
    return [by_beam.certificate.level, exact.certificate.level]


def check_batch(seed: int, rng: random.Random) -> list[Level]:
    """Check sentences with an automaton each, a shared one or none: in a batch as alone."""
    tables = [Table(seed + i, draw_alpha(rng)) for i in range(rng.randint(2, 5))]
    words = [2, 3, 4]
    automata = [
        compiled(random_expression(rng, words)[0], words, EOS) if rng.random() < 0.8 else None
        for _ in tables
    ]
    if rng.random() < 0.3:
        automata = [automata[0]] * len(tables)
    config = draw_config(rng, max_length=3)
    stepper = TableStepper()
    together = beam_search(stepper, tables, config, automata=automata)
    for table, automaton, result in zip(tables, automata, together, strict=True):
        (alone,) = beam_search(stepper, [table], config, automata=[automaton])
        assert [h.tokens for h in alone.hypotheses] == [h.tokens for h in result.hypotheses]
        one, other = alone.certificate, result.certificate
        assert (one.level, one.proven, one.bound) == (other.level, other.proven, other.bound)
        assert one.satisfied == pytest.approx(other.satisfied, abs=1e-12)
    return [result.certificate.level for result in together]
