"""The frontier of an exact search: what goes first, and what is removed when it is full."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from onmt_entmax.search.frontier import Frontier


def step_of(*log_probs: float, rows: int = 1) -> Any:
    """Return continuations of so many rows: all that a frontier reads of them."""
    parents = SimpleNamespace(prefixes=[None] * rows)
    return SimpleNamespace(log_probs=np.array(log_probs), parents=parents)


def test_the_step_with_the_most_probable_continuation_goes_first() -> None:
    frontier = Frontier(most_states=10)
    for log_prob in (-2.0, -1.0, -3.0):
        frontier.push(step_of(log_prob), np.array([0]))
    assert frontier.log_bound == -1.0
    popped = [frontier.pop()[0].log_probs[0] for _ in range(3)]
    assert popped == [-1.0, -2.0, -3.0]
    assert not frontier


def test_of_equally_probable_ones_the_latest_goes_first() -> None:
    frontier = Frontier(most_states=10)
    first, second = step_of(-1.0), step_of(-1.0)
    frontier.push(first, np.array([0]))
    frontier.push(second, np.array([0]))
    assert frontier.pop()[0] is second


def test_only_the_chosen_positions_wait() -> None:
    frontier = Frontier(most_states=10)
    frontier.push(step_of(-3.0, -1.0, -2.0), np.array([2, 0]))
    assert frontier.log_bound == -2.0
    assert [log_prob.tolist() for log_prob in frontier.log_probs()] == [[-2.0, -3.0]]


def test_a_step_without_positions_does_not_wait() -> None:
    frontier = Frontier(most_states=10)
    assert frontier.push(step_of(-1.0), np.array([], dtype=np.int64)) == []
    assert not frontier


def test_a_full_frontier_removes_the_least_probable_steps() -> None:
    """Each row of a step has a state: two steps of two rows are too many, three rows are not."""
    frontier = Frontier(most_states=3)
    frontier.push(step_of(-5.0, rows=2), np.array([0]))
    removed = frontier.push(step_of(-1.0, rows=2), np.array([0]))
    assert [log_prob.tolist() for log_prob in removed] == [[-5.0]]
    assert frontier.push(step_of(-4.0, rows=1), np.array([0])) == []
    assert frontier.log_bound == -1.0


def test_a_step_that_was_taken_out_makes_room() -> None:
    frontier = Frontier(most_states=3)
    frontier.push(step_of(-1.0, rows=2), np.array([0]))
    frontier.pop()
    assert frontier.push(step_of(-2.0, rows=3), np.array([0])) == []
