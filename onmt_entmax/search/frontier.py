"""The frontier of an exact search: continuations that wait to be followed."""

import heapq
from typing import NamedTuple

from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.prefixes import Continuations


class _Order(NamedTuple):
    """The key by which steps are popped, the smallest first."""

    minus_log_prob: float
    """Minus the log-probability of the step's most probable continuation that waits."""
    minus_push: int
    """Minus the number of the push. At equal probability the latest step, whose prefixes are the
    longest, goes first; and no two keys are equal."""


class _Waiting(NamedTuple):
    """A step, some of whose continuations wait."""

    order: _Order
    """Must be the first field: a heap compares tuples by it."""
    continuations: Continuations
    """The continuations of the step, as they were pushed."""
    positions: Ints
    """`(waiting,)` positions of those that wait, the most probable first"""

    @property
    def log_probs(self) -> Floats:
        """The log-probabilities `(waiting,)` of the continuations that wait."""
        return self.continuations.log_probs[self.positions]


class Frontier:
    """Continuations that wait, kept by step; the step with the most probable one goes first.

    Args:
        most_states: the most decoder states that it may keep.
    """

    def __init__(self, most_states: int) -> None:
        self._most_states = most_states
        self._heap: list[_Waiting] = []
        self._states = 0  # decoder states of the steps in the heap: one for each row
        self._pushes = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def log_bound(self) -> float:
        """The largest log-probability of a continuation that waits; at least one must."""
        return -self._heap[0].order.minus_log_prob

    def push(self, continuations: Continuations, positions: Ints) -> list[Floats]:
        """Add a step; if there are too many states then, remove the least probable steps.

        Args:
            continuations: the continuations of one step.
            positions: `(n,)` positions of those that are to wait, the most probable first; if
                there are none, nothing is added.

        Returns:
            For each step that was removed, the log-probabilities of its waiting continuations.
        """
        if len(positions):
            self._pushes += 1
            order = _Order(-continuations.log_probs[positions[0]], -self._pushes)
            heapq.heappush(self._heap, _Waiting(order, continuations, positions))
            self._states += _rows(continuations)
        removed = []
        while self._states > self._most_states:
            worst = self._heap.pop(self._heap.index(max(self._heap)))
            heapq.heapify(self._heap)
            self._states -= _rows(worst.continuations)
            removed.append(worst.log_probs)
        return removed

    def pop(self) -> tuple[Continuations, Ints]:
        """Remove the step with the most probable continuation that waits.

        Returns:
            The continuations of the step, as they were pushed, and the positions of those that
            waited, the most probable first.
        """
        _, continuations, positions = heapq.heappop(self._heap)
        self._states -= _rows(continuations)
        return continuations, positions

    def log_probs(self) -> list[Floats]:
        """Return the log-probabilities of the waiting continuations, an array for each step."""
        return [waiting.log_probs for waiting in self._heap]


def _rows(continuations: Continuations) -> int:
    """Return the number of rows of the step that has these continuations."""
    return len(continuations.parents.prefixes)
