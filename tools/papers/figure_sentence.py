"""Figures of one sentence: attention as a heat map, and forced decoding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onmt_entmax.data.batch import make_batch
from onmt_entmax.errors import UserError
from onmt_entmax.report.lattice import Node, build_lattice
from onmt_entmax.translator import Translator
from tools.papers.pictures import (
    INK,
    PAGE,
    SOFT,
    Axes,
    Figure,
    measuring_figure,
    pyplot,
    readable,
)

LISTED = 8  # tokens listed in a column of forced decoding; the rest is summed
# Inches.
LINE = 0.155  # height of a line
GAP = 0.09  # beside a text
BETWEEN = 0.16  # between two bands of columns
# Of entries, and of the given token.
STYLES: dict[bool, dict[str, Any]] = {
    False: {"fontsize": 7.5, "weight": "normal"},
    True: {"fontsize": 7.5, "weight": "bold"},
}
WARN = "#D55E00"


class Sentence(NamedTuple):
    """A source, a target with its end symbol, and the model's distributions along the target."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    nodes: tuple[Node, ...]
    names: tuple[str, ...]  # the target vocabulary


def sentence(
    folders: Sequence[Path],
    source: str,
    target: str | None = None,
    transforms: Sequence[str] | None = None,
) -> Sentence:
    """Run models along a target, or along their own best output if there is none.

    Raises:
        UserError: a model cannot be read, the source is empty, or no output finished.
    """
    translator = Translator.from_folders(folders, transforms=transforms, attention=True)
    names = translator.vocabularies.target
    words, target_words = translator.reader.preprocess(source, target or "")
    if not words:
        raise UserError("--source: there is no word in it")
    if target is None:
        answer = next(translator.answers([source]))
        if not answer.hypotheses:
            raise UserError("no output of the model finished; give a --target")
        target_words = names.decode(answer.hypotheses[0].hypothesis.tokens)
    batch = make_batch([translator.reader.encode(words).example], translator.vocabularies)
    lattice = build_lattice(translator.stepper, batch, [names.encode(target_words)], limit=LISTED)
    # What a model writes from right to left is read from left to right all the same.
    order = -1 if translator.reader.backwards else 1
    tokens = (*target_words, "</s>")
    return Sentence(tuple(words), tokens[::order], lattice.nodes[::order], names.tokens)


def draw_attention(drawn: Sentence) -> Figure:
    """Draw attention as a heat map, rows for target tokens and columns for source tokens.

    Raises:
        UserError: the model has no attention.
    """
    if drawn.nodes[0].attention is None:
        raise UserError("the model has no attention")
    columns, lines = len(drawn.source), len(drawn.target)
    weights = np.array([node.attention for node in drawn.nodes])[:, :columns]
    cell = min(0.19, (PAGE - 1.5) / columns)
    figure, axis = pyplot.subplots(figsize=(cell * columns + 1.5, cell * lines + 0.9))
    heat_scale(figure, heat_map(axis, weights, drawn.target, drawn.source, cell), axis)
    return figure


def heat_map(
    axis: Axes, weights: Any, lines: Sequence[str], columns: Sequence[str], cell: float
) -> Any:
    """Draw attention weights `(lines, columns)`; only zero is white.

    Args:
        axis: to draw on.
        weights: of the tokens of `lines` to those of `columns`.
        lines: tokens that attend.
        columns: tokens that are attended to.
        cell: size of a cell in inches.

    Returns:
        The image, for `heat_scale`.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    size = max(4.0, min(8.0, cell * 72 * 0.62))
    # The palest blue must differ from white at a glance.
    blues = LinearSegmentedColormap.from_list("blues", ["#D9E8F5", "#5A9BD0", "#08306B"])
    image = axis.imshow(
        np.ma.masked_equal(weights, 0.0), cmap=blues, vmin=0, vmax=1, aspect="equal"
    )
    for line, column in zip(*weights.nonzero(), strict=True):
        corner = (column - 0.5, line - 0.5)
        axis.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=INK, linewidth=0.5))
    axis.set_xticks(range(len(columns)), list(map(readable, columns)), rotation=90, fontsize=size)
    axis.set_yticks(range(len(lines)), list(map(readable, lines)), fontsize=size)
    axis.tick_params(length=0, pad=3, top=True, labeltop=True, bottom=False, labelbottom=False)
    for spine in axis.spines.values():
        spine.set(visible=True, linewidth=0.4, color=SOFT)
    return image


def heat_scale(figure: Figure, image: Any, axis: Any) -> None:
    """Draw the scale of a heat map beside its axis, or beside several."""
    bar = figure.colorbar(image, ax=axis, fraction=0.04, pad=0.02, aspect=12, shrink=0.6)
    bar.set_ticks([0, 0.5, 1])
    bar.outline.set_linewidth(0.4)
    bar.ax.tick_params(length=2, labelsize=6.5)


class Entry(NamedTuple):
    """One line of a column of forced decoding: a token and its probability."""

    text: str
    share: str = ""
    gold: bool = False


def columns_of(drawn: Sentence) -> list[list[Entry]]:
    """Return the possible tokens at each target position.

    Positions without a choice are joined to a single entry without a share. A token that the model
    excludes has the share 0.
    """
    columns: list[list[Entry]] = []
    for token, node in zip(drawn.target, drawn.nodes, strict=True):
        gold = next(
            branch
            for branch in node.branches
            if branch.child is not None or branch.hypothesis is not None
        )
        if node.support == 1 and gold.log_prob > -math.inf:
            certain = columns and not columns[-1][0].share
            before = f"{columns.pop()[0].text} " if certain else ""
            columns.append([Entry(before + readable(token), gold=True)])
            continue
        entries = []
        for branch in node.branches:
            text = token if branch is gold else drawn.names[branch.token]  # may be unknown
            probability = math.exp(branch.log_prob)
            share = "0" if branch.log_prob == -math.inf else percent(probability)
            entries.append(Entry(readable(text), share, branch is gold))
        if node.others_count:
            entries.append(Entry(f"{node.others_count:,} more", percent(node.others)))
        columns.append(entries)
    return columns


def percent(probability: float) -> str:
    """Format a probability as the paper does."""
    return "<0.1%" if probability < 0.001 else f"{probability:.1%}"


class Column(NamedTuple):
    """A column of forced decoding, with its left edge and its width in inches."""

    entries: list[Entry]
    left: float
    width: float


def draw_forced(drawn: Sentence) -> Figure:
    """Draw forced decoding: columns of possible tokens, the given one in bold."""
    figure, width_of = measuring_figure()
    bands = _bands(columns_of(drawn), width_of)
    heights = [LINE * max(len(column.entries) for column in band) + 0.14 for band in bands]
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
        names = max(width_of(entry.text, **STYLES[entry.gold]) for entry in entries)
        shares = max(width_of(entry.share, **STYLES[entry.gold]) for entry in entries)
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
        y = (top - 0.07 - LINE * (number + 0.5)) / page_height
        style: dict[str, Any] = {**STYLES[entry.gold], "va": "center_baseline"}
        style["color"] = WARN if entry.share == "0" else INK
        figure.text((column.left + GAP) / page_width, y, entry.text, **style)
        figure.text((right - GAP) / page_width, y, entry.share, ha="right", **style)
