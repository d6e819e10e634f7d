"""The data of a sentence's pictures on a page: prefix tree, next tokens, attention."""

import math
from collections.abc import Sequence
from typing import Any

from onmt_entmax.report.lattice import Branch, Lattice, Node


def drawing(
    lattice: Lattice, source: Sequence[str], names: Sequence[str], eos: int, backwards: bool
) -> dict[str, Any]:
    """Return the data of one sentence's pictures, as JSON.

    Args:
        lattice: of the record's hypotheses, in their order.
        source: tokens of the source.
        names: the target vocabulary, token by id.
        eos: id of the end symbol.
        backwards: whether the model writes the last token first; the pictures read from left to
            right all the same.

    Returns:
        `{"source": [token, ...], "backwards": bool, "nodes": [node, ...]}`. The `branches` of a
        node are `[token, probability]`, or `[token, probability, index of the next node]` if a
        hypothesis goes on there, or `[null, probability, index of the hypothesis]` if one ends
        there. `others` is `[probability, number]` of the tokens that are not listed, `attention`
        `[position, weight, position, weight, ...]` of nonzero weights.
    """
    return {
        "source": list(source),
        "backwards": backwards,
        "nodes": [_node(node, names, eos) for node in lattice.nodes],
    }


def _node(node: Node, names: Sequence[str], eos: int) -> dict[str, Any]:
    """Return a node as JSON has it; attention is position and weight of each attended position."""
    entry: dict[str, Any] = {"branches": [_branch(branch, names, eos) for branch in node.branches]}
    if node.others_count:
        entry["others"] = [_short(node.others), node.others_count]
    if node.attention is not None:
        entry["attention"] = [
            number
            for position, weight in enumerate(node.attention)
            if weight > 0
            for number in (position, _short(weight))
        ]
    return entry


def _branch(branch: Branch, names: Sequence[str], eos: int) -> list[Any]:
    """Return a branch as JSON has it, see `drawing`."""
    name = None if branch.token == eos else names[branch.token]
    leads_to = branch.child if branch.hypothesis is None else branch.hypothesis
    short: list[Any] = [name, _short(math.exp(branch.log_prob))]
    return short if leads_to is None else [*short, leads_to]


def _short(number: float) -> float:
    """Round to five significant digits; no other number becomes zero."""
    return float(f"{number:.5g}")
