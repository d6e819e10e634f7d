"""Options that have a list of values, each from an update of the run on: dropout, accum_count."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def value_at(values: Sequence[T], starts: Sequence[int], step: int) -> T:
    """Return the value that holds after `step` updates.

    With values 0.3, 0.1 and starts 0, 1000, it is 0.3 up to step 999, and 0.1 from 1000 on.

    Args:
        values: the values of the option.
        starts: the step at which each value starts, rising; as in OpenNMT-py, the first value also
            holds before its own.
        step: updates done.
    """
    started = [value for value, start in zip(values, starts, strict=True) if step >= start]
    return started[-1] if started else values[0]
