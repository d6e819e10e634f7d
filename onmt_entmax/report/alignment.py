"""Alignments: the source tokens to which each target token attends."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from torch import Tensor


class Link(NamedTuple):
    """A source token and a target token that attends to it.

    Attributes:
        source: position of the source token.
        target: position of the target token.
        weight: attention weight, above 0.
    """

    source: int
    target: int
    weight: float


@dataclass(frozen=True)
class Alignment:
    """The attention of one output, by positions from 0, from left to right on both sides.

    Attributes:
        source: tokens that the model read.
        target: tokens that it wrote, without the end symbol.
        links: every pair of positive weight, sorted by target position.
        dense: whether every position always has positive weight (softmax).
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[Link, ...]
    dense: bool

    def pharaoh(self) -> str:
        """Return the links in Pharaoh's format: `0-1` for source position 0 and target position 1.

        Dense attention links all pairs, so only the largest weight of each target token counts.
        """
        links = self.links
        if self.dense:
            by_target = groupby(links, attrgetter("target"))  # they are sorted by it
            links = tuple(max(of_target, key=attrgetter("weight")) for _, of_target in by_target)
        return " ".join(f"{link.source}-{link.target}" for link in sorted(links))

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
    links = tuple(
        Link(position, step, float(weights[step, position]))
        for step, position in weights.nonzero().tolist()
    )
    return Alignment(tuple(source), tuple(target), links, dense)
