"""`score_targets`: log-probabilities, ranks and supports of given outputs, token by token."""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from onmt_entmax.search import TargetScore, TokenScore, score_targets
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, RoundedUp, Table, random_tables


class Step(NamedTuple):
    """A token of a target, or its end symbol."""

    token: int
    log_probs: Sequence[float]
    """Log-probabilities of all tokens, after the tokens before this one."""
    score: TokenScore

    @property
    def expected(self) -> float:
        """The log-probability of the token."""
        return self.log_probs[self.token]


class Scored(NamedTuple):
    """A random target of a random table, and its score."""

    steps: list[Step]
    score: TargetScore


def steps_of(table: Table, target: list[int], score: TargetScore) -> list[Step]:
    """Return the steps of a target and its end symbol."""
    return [
        Step(token, table.log_probs(tuple(target[:position])), step)
        for position, (token, step) in enumerate(zip([*target, EOS], score.steps, strict=True))
    ]


WORDS = (2, 3, 4)  # the tokens of a table without the start and end symbols
LONGEST = 4


@pytest.fixture(scope="module")
def scored() -> list[Scored]:
    draw = random.Random(0)
    tables = random_tables(40)
    targets = [draw.choices(WORDS, k=draw.randint(0, LONGEST)) for _ in tables]
    scores = score_targets(TableStepper(), tables, targets)
    return [
        Scored(steps_of(table, target, score), score)
        for table, target, score in zip(tables, targets, scores, strict=True)
    ]


def test_a_token_has_its_log_probability(scored: list[Scored]) -> None:
    for target in scored:
        for step in target.steps:
            assert step.score.log_prob == pytest.approx(step.expected)


def test_the_rank_of_a_token_counts_more_probable_ones(scored: list[Scored]) -> None:
    for target in scored:
        for step in target.steps:
            assert step.score.rank == 1 + sum(other > step.expected for other in step.log_probs)


def test_the_support_of_a_step_counts_possible_tokens(scored: list[Scored]) -> None:
    for target in scored:
        for step in target.steps:
            assert step.score.support == sum(other > -math.inf for other in step.log_probs)


def test_the_score_of_a_target_is_the_sum_over_its_tokens(scored: list[Scored]) -> None:
    for target in scored:
        total = sum(step.expected for step in target.steps)
        assert target.score.log_prob == pytest.approx(total)


def test_a_target_names_its_first_impossible_token(scored: list[Scored]) -> None:
    first = []
    for target in scored:
        possible = [step.expected > -math.inf for step in target.steps]
        first.append(None if all(possible) else possible.index(False))
    assert [target.score.excluded_at for target in scored] == first
    assert {None, 0, 1} <= set(first)


def test_a_probability_rounded_above_one_counts_as_one() -> None:
    model = RoundedUp({(): {2: 1.0}, (2,): {EOS: 1.0}})
    assert score_targets(TableStepper(7), [model], [[2]])[0].log_prob == 0.0
