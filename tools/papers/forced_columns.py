"""Columns of possible tokens along a target, which `figure_forced.py` draws."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from onmt_entmax.report.lattice import Branch, Node
from tools.papers.figure_sentence import Sentence
from tools.papers.pictures import readable

FONT_SIZE = 7.5  # points


class Entry(NamedTuple):
    """One line of a column.

    Attributes:
        text: a token, or several that are certain.
        share: its probability; empty for certain ones.
        gold: whether it is the target's, which is in bold.
        impossible: whether the model excludes it, which only a target's token can be.
    """

    text: str
    share: str = ""
    gold: bool = False
    impossible: bool = False

    @property
    def style(self) -> dict[str, Any]:
        """Style of both texts, on which their widths depend."""
        return {"fontsize": FONT_SIZE, "weight": "bold" if self.gold else "normal"}


def columns_of(sentence: Sentence) -> list[list[Entry]]:
    """Return the possible tokens at each target position.

    Positions without a choice are joined to a single entry without a share. A token that the model
    excludes has the share 0.
    """
    columns: list[list[Entry]] = []
    for token, node in zip(sentence.target, sentence.nodes, strict=True):
        gold = _branch_of_target(node)
        if node.support > 1 or gold.log_prob == -math.inf:
            columns.append(_entries(sentence, token, node, gold))
            continue
        text = readable(token)
        if columns and not columns[-1][0].share:  # the position before is certain, too
            text = f"{columns.pop()[0].text} {text}"
        columns.append([Entry(text, gold=True)])
    return columns


def _branch_of_target(node: Node) -> Branch:
    """Return the branch of the target's token: along it, the target goes on or ends."""
    return next(
        branch
        for branch in node.branches
        if branch.child is not None or branch.hypothesis is not None
    )


def _entries(sentence: Sentence, token: str, node: Node, gold: Branch) -> list[Entry]:
    """Return the possible tokens at a target position.

    Args:
        sentence: has the names of tokens.
        token: token of the target, which may be unknown to the model.
        node: the distribution there.
        gold: the branch of the token.
    """
    entries = []
    for branch in node.branches:
        text = token if branch is gold else sentence.names[branch.token]
        impossible = branch.log_prob == -math.inf
        entry = Entry(
            text=readable(text),
            share="0" if impossible else percent(math.exp(branch.log_prob)),
            gold=branch is gold,
            impossible=impossible,
        )
        entries.append(entry)
    if node.others_count:
        entries.append(Entry(f"{node.others_count:,} more", percent(node.others)))
    return entries


def percent(probability: float) -> str:
    """Format a probability as the paper does."""
    return "<0.1%" if probability < 0.001 else f"{probability:.1%}"
