"""Forced decoding: the possible tokens along a target (Peters et al. 2019, Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from onmt_entmax.report.lattice import Branch, Node
from tools.papers.figure_sentence import Sentence
from tools.papers.pictures import INK, PAGE, SOFT, Figure, measuring_figure, readable

# Inches.
LINE = 0.155  # height of a line
GAP = 0.09  # beside a text
ABOVE = 0.07  # above the first line of a column, and below the last
BETWEEN = 0.16  # between two bands of columns
FONT_SIZE = 7.5  # points
WARN = "#D55E00"  # colour of a token that the model excludes


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


def columns_of(drawn: Sentence) -> list[list[Entry]]:
    """Return the possible tokens at each target position.

    Positions without a choice are joined to a single entry without a share. A token that the model
    excludes has the share 0.
    """
    columns: list[list[Entry]] = []
    for token, node in zip(drawn.target, drawn.nodes, strict=True):
        gold = _branch_of_target(node)
        if node.support > 1 or gold.log_prob == -math.inf:
            columns.append(_entries(drawn, token, node, gold))
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


def _entries(drawn: Sentence, token: str, node: Node, gold: Branch) -> list[Entry]:
    """Return the possible tokens at a target position.

    Args:
        drawn: has the names of tokens.
        token: of the target, which may be unknown to the model.
        node: the distribution there.
        gold: the branch of the token.
    """
    entries = []
    for branch in node.branches:
        text = token if branch is gold else drawn.names[branch.token]
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


class Column(NamedTuple):
    """A column.

    Attributes:
        entries: its lines.
        left: its left edge, in inches.
        width: in inches.
    """

    entries: list[Entry]
    left: float
    width: float


def draw_forced(drawn: Sentence) -> Figure:
    """Draw forced decoding: columns of possible tokens, the given one in bold."""
    figure, width_of = measuring_figure()
    bands = _bands(columns_of(drawn), width_of)
    heights = [LINE * max(len(column.entries) for column in band) + 2 * ABOVE for band in bands]
    page = max(band[-1].left + band[-1].width for band in bands)
    height = top = sum(heights) + BETWEEN * (len(bands) - 1)
    figure.set_size_inches(page, height)
    for band, band_height in zip(bands, heights, strict=True):
        for column in band:
            _draw_column(figure, column, top, band_height)
        top -= band_height + BETWEEN
    return figure


def _bands(columns: Sequence[list[Entry]], width_of: Callable[..., float]) -> list[list[Column]]:
    """Return columns in as many bands, one below the other, as the page needs."""
    bands: list[list[Column]] = [[]]
    left = 0.0
    for entries in columns:
        names = max(width_of(entry.text, **entry.style) for entry in entries)
        shares = max(width_of(entry.share, **entry.style) for entry in entries)
        width = names + (shares + GAP if shares else 0) + 2 * GAP
        if left and left + width > PAGE:
            bands.append([])
            left = 0.0
        bands[-1].append(Column(entries, left, width))
        left += width
    return bands


def _draw_column(figure: Figure, column: Column, top: float, height: float) -> None:
    """Draw a column between two lines; its top and height are in inches."""
    from matplotlib.lines import Line2D

    page_width, page_height = figure.get_size_inches()
    right = column.left + column.width
    for side in (column.left, right):
        ends = [(top - height) / page_height, top / page_height]
        figure.add_artist(Line2D([side / page_width] * 2, ends, color=SOFT, linewidth=0.5))
    for number, entry in enumerate(column.entries):
        y = (top - ABOVE - LINE * (number + 0.5)) / page_height
        colour = WARN if entry.impossible else INK
        style = {**entry.style, "va": "center_baseline", "color": colour}
        figure.text((column.left + GAP) / page_width, y, entry.text, **style)
        figure.text((right - GAP) / page_width, y, entry.share, ha="right", **style)
