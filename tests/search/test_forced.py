"""Scores of given outputs."""

import math
import random
from typing import NamedTuple

import pytest

from onmt_entmax.search import TargetScore, TokenScore, score_targets
from tests.search.tables import EOS, RoundedUp, Table, TableStepper


class Scored(NamedTuple):
    """A random target of a random table, and its score."""

    target: list[int]
    rows: list[list[float]]
    """For each token and the end symbol the log-probabilities before it."""
    score: TargetScore

    def steps(self) -> list[tuple[int, list[float], TokenScore]]:
        """Return token, log-probabilities and score of each step."""
        return list(zip([*self.target, EOS], self.rows, self.score.steps, strict=True))


@pytest.fixture(scope="module")
def scored() -> list[Scored]:
    draw = random.Random(0)
    tables = [Table(seed, (1.0, 1.5, 2.0)[seed % 3]) for seed in range(40)]
    targets = [[draw.randint(2, 4) for _ in range(draw.randint(0, 4))] for _ in tables]
    scores = score_targets(TableStepper(), tables, targets)
    return [
        Scored(target, [table.log_probs(tuple(target[:n])) for n in range(len(target) + 1)], score)
        for table, target, score in zip(tables, targets, scores, strict=True)
    ]


def test_a_token_has_its_log_probability(scored: list[Scored]) -> None:
    for target in scored:
        for token, row, step in target.steps():
            assert step.log_prob == pytest.approx(row[token])


def test_the_rank_of_a_token_counts_more_probable_ones(scored: list[Scored]) -> None:
    for target in scored:
        for token, row, step in target.steps():
            assert step.rank == 1 + sum(other > row[token] for other in row)


def test_the_support_of_a_step_counts_possible_tokens(scored: list[Scored]) -> None:
    for target in scored:
        for _, row, step in target.steps():
            assert step.support == sum(other > -math.inf for other in row)


def test_the_score_of_a_target_is_the_sum_over_its_tokens(scored: list[Scored]) -> None:
    for target in scored:
        total = sum(row[token] for token, row, _ in target.steps())
        assert target.score.log_prob == pytest.approx(total)


def test_a_target_names_its_first_impossible_token(scored: list[Scored]) -> None:
    first = []
    for target in scored:
        steps = enumerate(target.steps())
        impossible = [n for n, (token, row, _) in steps if row[token] == -math.inf]
        first.append(min(impossible, default=None))
    assert [target.score.excluded_at for target in scored] == first
    assert {None, 0, 1} <= set(first)


def test_a_probability_rounded_above_one_counts_as_one() -> None:
    model = RoundedUp({(): {2: 1.0}, (2,): {EOS: 1.0}})
    assert score_targets(TableStepper(7), [model], [[2]])[0].log_prob == 0.0
