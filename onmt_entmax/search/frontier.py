"""The frontier of an exact search: continuations that wait to be followed."""

import heapq
from typing import NamedTuple

from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.prefixes import Continuations


class _Order(NamedTuple):
    """Which continuations go first: those of the smallest order."""

    minus_log_prob: float
    """Of the most probable one."""
    minus_push: int
    """Minus the number of the push: among equally probable ones the latest, which are longest, go
    first. No two are equal."""


class _Waiting(NamedTuple):
    """Continuations of one step that wait."""

    order: _Order
    """Must be the first field: a heap compares tuples by it."""
    continuations: Continuations
    """All of the step."""
    positions: Ints
    """`(left,)` positions of those that wait, the most probable first."""

    @property
    def log_probs(self) -> Floats:
        """Those of the continuations that wait, `(left,)`."""
        return self.continuations.log_probs[self.positions]


class Frontier:
    """Continuations that wait, those of one step together; the most probable ones go first.

    Args:
        most_states: decoder states that it may keep.
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
        """The largest log-probability of what waits; something must."""
        return -self._heap[0].order.minus_log_prob

    def push(self, continuations: Continuations, positions: Ints) -> list[Floats]:
        """Add continuations; remove the least probable steps if there are too many states.

        Args:
            continuations: the continuations of one step.
            positions: `(n,)` of those that wait, the most probable first; may be none.

        Returns:
            The log-probabilities of each step that was removed.
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
        """Remove those of the step with the most probable one; return the step and positions."""
        _, continuations, positions = heapq.heappop(self._heap)
        self._states -= _rows(continuations)
        return continuations, positions

    def log_probs(self) -> list[Floats]:
        """Return the log-probabilities of what waits of each step."""
        return [waiting.log_probs for waiting in self._heap]


def _rows(continuations: Continuations) -> int:
    """Return the number of rows of the step that has these continuations."""
    return len(continuations.parents.prefixes)
