"""Which source tokens each target token attends to."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Alignment:
    """The attention of one output, by positions from 0, from left to right on both sides.

    Attributes:
        source: tokens that the model read.
        target: tokens that it wrote, without the end symbol.
        links: source position, target position and weight of every pair of positive weight, by
            target position.
        dense: whether every position always has positive weight (softmax).
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int, float], ...]
    dense: bool

    def pharaoh(self) -> str:
        """Return the pairs as `i-j`: all, or if dense for each target token its largest weight."""
        links = self.links
        if self.dense:
            by_target = groupby(links, itemgetter(1))  # links are in the order of the targets
            links = tuple(max(of_target, key=itemgetter(2)) for _, of_target in by_target)
        return " ".join(f"{i}-{j}" for i, j, _ in sorted(links))

    def as_dict(self) -> dict[str, Any]:
        """Return the alignment as a report writes it."""
        return {"source": self.source, "target": self.target, "links": self.links}


def alignment(
    attention: Tensor,
    source: Sequence[str],
    target: Sequence[str],
    *,
    dense: bool,
    backwards: bool,
) -> Alignment:
    """Return the alignment of one output.

    Args:
        attention: `(steps, source length)`, the last step for the end symbol.
        source: tokens of the source.
        target: tokens of the target, in the order in which the model wrote them.
        dense: whether every position always has positive weight.
        backwards: whether the model writes from right to left.
    """
    weights = attention[: len(target), : len(source)]
    if backwards:
        weights, target = weights.flip(0), target[::-1]
    links = tuple((i, j, float(weights[j, i])) for j, i in weights.nonzero().tolist())
    return Alignment(tuple(source), tuple(target), links, dense)
