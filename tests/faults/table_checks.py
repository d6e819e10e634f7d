"""Checks of searches of tables of probabilities; see `runner.Check`."""

import math
import random
from collections.abc import Mapping
from typing import NamedTuple

from onmt_entmax.search import (
    Budget,
    Penalties,
    Request,
    SearchConfig,
    SearchResult,
    beam_search,
    exact_search,
)
from onmt_entmax.search.certificate import Level
from tests.faults.claims import check_penalised_result, check_result
from tests.faults.definitions import allowed_part, most_excluded, scores_of
from tests.faults.draws import (
    ENOUGH_EXPANSIONS,
    FEW_EXPANSIONS,
    MASSES,
    constraints_on,
    draw_alpha,
    draw_config,
    draw_reward,
    draw_table,
)
from tests.search.checks import check
from tests.search.enumeration import EnumeratedSupport, Tokens, enumerate_support
from tests.search.table_steppers import TableStepper
from tests.search.tables import Table

# Of a table's tokens, 0 and 1 are the start and end symbols, 2 to 5 are words.
CONSTRAINTS = constraints_on(ignored=2, banned=3)
PENALTIES = (
    Penalties("wu", alpha=0.8),
    Penalties("avg"),
    Penalties(coverage_penalty="summary", beta=0.01),
    Penalties("wu", alpha=0.5, coverage_penalty="wu", beta=0.1),
)
# Decoder states that an exact search may keep: too few, or enough for every table.
FEW_STATES, ENOUGH_STATES = 3, 20_000


def check_beam(seed: int, rng: random.Random) -> list[Level]:
    """Check a beam search of several sentences, together and each alone."""
    _, stepper, tolerance = draw_table(seed, rng)
    tokens = stepper.vocabulary_size
    max_length = rng.choice([0, 1, 2, 3, 4])
    tables = [Table(seed + i, draw_alpha(rng), tokens) for i in range(rng.randint(1, 4))]
    config = draw_config(rng, max_length)
    alone = [beam_search(stepper, [table], config)[0] for table in tables]
    together = beam_search(stepper, tables, config)
    for table, result, batched in zip(tables, alone, together, strict=True):
        support = enumerate_support(stepper, [table], max_length)
        check_result(result, support, config, tolerance)
        check_result(batched, support, config, tolerance)
        # Scores may differ in their last bits: steps of a `TableStepper` alternate between all
        # tokens and the support alone, so the same step need not be of the same kind in both.
        assert _tokens_of(result) == _tokens_of(batched)
        assert result.certificate == batched.certificate
    return [result.certificate.level for result in alone]


def _tokens_of(result: SearchResult) -> list[Tokens]:
    """Return the tokens of each hypothesis, the best first."""
    return [hypothesis.tokens for hypothesis in result.hypotheses]


def check_constraints(seed: int, rng: random.Random) -> list[Level]:
    """Check searches with lengths, bans, blocked n-grams and forced prefixes."""
    table, stepper, tolerance = draw_table(seed, rng, least_tokens=5)
    max_length = rng.choice([1, 2, 3, 4])
    constraints = rng.choice(CONSTRAINTS)
    words = [rng.choice([2, 3, 4]) for _ in range(rng.choice([0, 0, 1, 2]))]
    forced = tuple(words[:max_length])
    config = draw_config(rng, max_length, constraints=constraints)
    support = enumerate_support(stepper, [table], max_length)
    budget = Budget(rng.choice([FEW_EXPANSIONS, ENOUGH_EXPANSIONS]))
    results = [
        beam_search(stepper, [table], config, [forced])[0],
        exact_search(stepper, Request([table], [forced]), config, budget),
    ]
    allowed = allowed_part(support, constraints, forced)
    ruled_out = most_excluded(support, allowed)
    for result in results:
        check(result, allowed, config, tolerance, ruled_out)
    return [result.certificate.level for result in results]


def check_penalties(seed: int, rng: random.Random) -> list[Level]:
    """Check searches with length and coverage penalties."""
    table, stepper, _ = draw_table(seed, rng)
    penalties = rng.choice(PENALTIES)
    config = draw_config(rng, max_length=4, n_bests=(1, 1, 2), penalties=penalties)
    support = enumerate_support(stepper, [table], config.max_length)
    scores = scores_of(support, penalties)
    (beam,) = beam_search(stepper, [table], config)
    scored = ScoredTable(stepper, table, config, scores, is_cut=bool(support.prefixes))
    return _check_beam_and_exact(beam, scored)


def check_reward(seed: int, rng: random.Random) -> list[Level]:
    """Check searches with a length reward; proofs are about sequences beyond the limit, too."""
    longest = 5  # tokens of the enumerated sequences; the search may have a lower limit
    _, stepper, _ = draw_table(seed, rng)
    tables = [
        Table(seed + i, draw_alpha(rng), stepper.vocabulary_size, spread=2.0, end=1.0)
        for i in range(3)
    ]
    reward = draw_reward(rng)
    limit = rng.choice([2, 3, longest])
    config = draw_config(rng, limit, n_bests=(1, 1, 3), penalties=reward)
    beams = beam_search(stepper, tables, config)
    levels: list[Level] = []
    for table, length, beam in zip(tables, stepper.source_lengths(tables), beams, strict=True):
        scores = scores_of(enumerate_support(stepper, [table], longest), reward, length)
        is_cut = bool(enumerate_support(stepper, [table], limit).prefixes)
        scored = ScoredTable(stepper, table, config, scores, is_cut=is_cut)
        levels += _check_beam_and_exact(beam, scored)
    return levels


class ScoredTable(NamedTuple):
    """A table, a request under penalties or with a length reward, and the scores of all outputs."""

    stepper: TableStepper
    table: Table
    config: SearchConfig
    scores: Mapping[Tokens, float]
    is_cut: bool
    """Whether the length limit of the request cuts any output; else an exact search proves all."""


def _check_beam_and_exact(beam: SearchResult, scored: ScoredTable) -> list[Level]:
    """Check the result of a beam search, and that of an exact search that goes on from it."""
    stepper, table, config, scores, is_cut = scored
    exact = exact_search(stepper, Request([table]), config, beam_result=beam)
    assert exact.certificate.proven >= beam.certificate.proven
    if not is_cut:
        assert exact.certificate.proven >= min(config.n_best, len(scores))
    return [check_penalised_result(result, scores, is_cut=is_cut) for result in (beam, exact)]


def check_exact(seed: int, rng: random.Random) -> list[Level]:
    """Check an exact search, or a list of the support down to some mass."""
    table, stepper, tolerance = draw_table(seed, rng)
    max_length = rng.choice([1, 2, 3, 4])
    n_best = rng.choice([0, 1, 1, 3])
    config = SearchConfig(beam_size=rng.randint(1, 10), n_best=n_best, max_length=max_length)
    budget = Budget(
        expansions=rng.choice([FEW_EXPANSIONS, ENOUGH_EXPANSIONS]),
        states=rng.choice([FEW_STATES, ENOUGH_STATES]),
        rows=rng.choice([1, 3, 64]),
    )
    mass = rng.choice(MASSES)
    support = enumerate_support(stepper, [table], max_length)
    result = exact_search(stepper, Request([table]), config, budget, mass)
    check(result, support, config, tolerance)
    if budget.expansions > FEW_EXPANSIONS and budget.states > FEW_STATES:  # enough for all tables
        if n_best:
            _check_provable_ranks(result, support, n_best, tolerance)
        elif not support.prefixes:
            _check_listed_mass(result, mass, tolerance)
    return [result.certificate.level]


def _check_provable_ranks(
    result: SearchResult, support: EnumeratedSupport, n_best: int, tolerance: float
) -> None:
    """Check that all ranks are proven, but for those that a prefix beyond the limit may take."""
    best_cut = max(support.prefixes.values(), default=-math.inf)
    provable = sum(log_prob > best_cut + tolerance for log_prob in support.sequences.values())
    assert result.certificate.proven >= min(n_best, provable)


def _check_listed_mass(result: SearchResult, mass: float, tolerance: float) -> None:
    """Check that a list has the mass that was asked for, or all that no exclusion takes away."""
    possible = 1 - result.certificate.excluded
    assert result.certificate.mass >= min(mass, possible) - tolerance
