"""The data of a sentence's pictures on a page: prefix tree, next tokens, attention.

A page may hold many sentences, so lists take the place of objects. For the hypotheses `d` and
`d e`:

    {
      "source": ["x", "y"],
      "backwards": false,
      "nodes": [
        {"branches": [["d", 0.9, 1]], "others": [0.1, 7], "attention": [0, 0.25, 1, 0.75]},
        {"branches": [[null, 0.6, 0], ["e", 0.3, 2], ["f", 0.1]]},
        {"branches": [[null, 1.0, 1]]}
      ]
    }

A node is a prefix; the first node is the empty prefix. Its `branches` are next tokens:

    ["d", 0.9, 1]    a hypothesis goes on with d, to node 1; the probability of d is 0.9
    [null, 0.6, 0]   hypothesis 0 ends
    ["f", 0.1]       no hypothesis goes on with f

`others` has two numbers, if some tokens are not listed: the total probability of these tokens, and
how many they are. `attention` has source positions and their weights in turn; positions of weight
zero are left out.
"""

import math
from collections.abc import Sequence
from typing import Any

from onmt_entmax.report.lattice import Branch, Lattice, Node


def drawing(
    lattice: Lattice, source: Sequence[str], names: Sequence[str], *, eos: int, backwards: bool
) -> dict[str, Any]:
    """Return the data of one sentence's pictures, as JSON.

    Args:
        lattice: the prefix tree of the record's hypotheses, which keep their order.
        source: tokens of the source.
        names: the target vocabulary, token by id.
        eos: id of the end symbol.
        backwards: whether the model writes the last token first. The pictures still read from left
            to right.

    Returns:
        See the file's docstring.
    """
    return {
        "source": list(source),
        "backwards": backwards,
        "nodes": [_node(node, names, eos) for node in lattice.nodes],
    }


def _node(node: Node, names: Sequence[str], eos: int) -> dict[str, Any]:
    """Return a node as JSON has it."""
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
    """Return a branch as JSON has it."""
    name = None if branch.token == eos else names[branch.token]
    leads_to = branch.child if branch.hypothesis is None else branch.hypothesis
    short: list[Any] = [name, _short(math.exp(branch.log_prob))]
    return short if leads_to is None else [*short, leads_to]


def _short(number: float) -> float:
    """Round to five significant digits, so that small probabilities do not become zero."""
    return float(f"{number:.5g}")
