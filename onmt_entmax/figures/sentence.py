"""Figures of one sentence: attention, and forced decoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.errors import UserError
from onmt_entmax.figures.style import INK, PAGE, SOFT, measuring_figure, readable
from onmt_entmax.report.lattice import Node, build_lattice
from onmt_entmax.translator import Translator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

END = "</s>"
CELL = 0.19  # size of a heat map's cell, inches
LISTED = 8  # tokens listed in a column; the rest is summed
LINE = 0.155  # height of a line, inches
WARN = "#D55E00"


@dataclass(frozen=True)
class Sentence:
    """A source, a target, and the model's distributions along the target.

    Attributes:
        source: source tokens.
        target: target tokens, with the end symbol.
        nodes: attention and possible tokens at each target token.
        names: the target vocabulary.
        warnings: name the tokens that are not in a vocabulary.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def texts(self) -> list[str]:
        """Return all text that a figure may show."""
        listed = {branch.token for node in self.nodes for branch in node.branches}
        return [*self.source, *self.target, *(self.names[token] for token in listed)]


def sentence(
    folders: Sequence[Path], source: str, target: str | None, transforms: Sequence[str] | None
) -> Sentence:
    """Run models along a target, or along their own best output if there is none.

    Raises:
        UserError: a model cannot be read, the source is empty, or no output finished.
    """
    translator = Translator.from_folders(folders, transforms=transforms, attention=True)
    names = translator.vocabularies.target
    words, given = translator.reader.preprocess(source, target or "")
    if not words:
        raise UserError("--source: there is no word in it")
    question = translator.reader.encode(words)
    if target is None:
        answer = next(translator.answers([source]))
        if not answer.hypotheses:
            raise UserError("no output of the model finished; give a --target")
        ids = list(answer.hypotheses[0].hypothesis.tokens)
        given = names.decode(ids)
    else:
        ids = names.encode(given)
    told: list[str] = []
    lacking = tuple(token for token in given if target and not names.can_write(token))
    for side, tokens, unknown, unseen in (
        ("source", words, question.unknown, question.unseen),
        ("target", given, lacking, ()),
    ):
        counted = UnknownTokens()
        counted.add(len(tokens), unknown, unseen)
        told += counted.warnings(side)
    batch = make_batch([question.example], translator.vocabularies)
    lattice = build_lattice(translator.stepper, batch, [ids], limit=LISTED)
    return Sentence(question.words, (*given, END), lattice.nodes, names.tokens, tuple(told))


def draw_attention(drawn: Sentence) -> Figure:
    """Draw attention as a heat map, rows for target tokens and columns for source tokens.

    Raises:
        UserError: the model has no attention.
    """
    from matplotlib import pyplot

    if drawn.nodes[0].attention is None:
        raise UserError("the model has no attention")
    columns, lines = len(drawn.source), len(drawn.target)
    weights = np.array([node.attention for node in drawn.nodes])[:, :columns]
    cell = min(CELL, (PAGE - 1.5) / columns)
    figure, axis = pyplot.subplots(figsize=(cell * columns + 1.5, cell * lines + 0.9))
    image = heat_map(axis, weights, drawn.target, drawn.source, cell)
    heat_scale(figure, image, axis)
    return figure


def heat_map(
    axis: Axes, weights: Any, lines: Sequence[str], columns: Sequence[str], cell: float
) -> Any:
    """Draw attention weights; only zero is white.

    Args:
        axis: to draw on.
        weights: ``(lines, columns)``.
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
    shown = np.ma.masked_equal(weights, 0.0)
    image = axis.imshow(shown, cmap=blues, vmin=0, vmax=1, aspect="equal")
    for line, column in zip(*weights.nonzero(), strict=True):
        corner = (column - 0.5, line - 0.5)
        axis.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=INK, linewidth=0.5))
    axis.set_xticks(range(len(columns)), [readable(t) for t in columns], rotation=90, fontsize=size)
    axis.set_yticks(range(len(lines)), [readable(t) for t in lines], fontsize=size)
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


@dataclass(frozen=True)
class Entry:
    """One line of a column of the forced-decoding figure."""

    text: str
    share: str = ""
    gold: bool = False
    excluded: bool = False

    def style(self) -> dict[str, Any]:
        """Return what decides the width of its texts."""
        return {"fontsize": 7.5, "weight": "bold" if self.gold else "normal"}


@dataclass(frozen=True)
class Column:
    """One target position, or several positions without a choice."""

    entries: tuple[Entry, ...]
    certain: bool


def percent(probability: float) -> str:
    """Format a probability as the paper does."""
    return "<0.1%" if probability < 0.001 else f"{probability:.1%}"


def columns_of(drawn: Sentence) -> list[Column]:
    """Return a column for each target position, with positions without a choice joined."""
    columns: list[Column] = []
    for token, node in zip(drawn.target, drawn.nodes, strict=True):
        gold = next(branch for branch in node.branches if branch.kept)
        if node.support == 1 and gold.log_prob > -math.inf:
            before = [columns.pop().entries[0].text] if columns and columns[-1].certain else []
            text = " ".join([*before, readable(token)])
            columns.append(Column((Entry(text, gold=True),), certain=True))
            continue
        entries = []
        for branch in node.branches:
            # The given token may be outside the vocabulary.
            text = token if branch is gold else drawn.names[branch.token]
            excluded = branch.log_prob == -math.inf
            share = "0" if excluded else percent(math.exp(branch.log_prob))
            entries.append(Entry(readable(text), share, branch is gold, excluded))
        if node.others_count:
            entries.append(Entry(f"{node.others_count:,} more", percent(node.others)))
        columns.append(Column(tuple(entries), certain=False))
    return columns


@dataclass(frozen=True)
class _Placed:
    """A column with its band, and its left edge and width in inches."""

    column: Column
    band: int
    left: float
    width: float


def _placed(columns: Sequence[Column], width_of: Any) -> list[_Placed]:
    """Place columns from left to right, in as many bands as the page width needs."""
    gap, band, left = 0.09, 0, 0.0
    placed: list[_Placed] = []
    for column in columns:
        names = max(width_of(entry.text, **entry.style()) for entry in column.entries)
        shares = max(width_of(entry.share, **entry.style()) for entry in column.entries)
        width = names + (shares + gap if shares else 0) + 2 * gap
        if left and left + width > PAGE:
            band, left = band + 1, 0.0
        placed.append(_Placed(column, band, left, width))
        left += width
    return placed


def draw_forced(drawn: Sentence) -> Figure:
    """Draw forced decoding: columns of possible tokens, the given one in bold."""
    from matplotlib.lines import Line2D

    figure, width_of = measuring_figure()
    placed = _placed(columns_of(drawn), width_of)
    heights = [
        LINE * max(len(p.column.entries) for p in placed if p.band == band) + 0.14
        for band in range(placed[-1].band + 1)
    ]
    width, height = max(p.left + p.width for p in placed), sum(heights) + 0.16 * (len(heights) - 1)
    figure.set_size_inches(width, height)
    for each in placed:
        top = height - sum(heights[: each.band]) - 0.16 * each.band
        for side in (each.left, each.left + each.width):
            ends = [(top - heights[each.band]) / height, top / height]
            figure.add_artist(Line2D([side / width] * 2, ends, color=SOFT, linewidth=0.5))
        for place, entry in enumerate(each.column.entries):
            y = (top - 0.07 - LINE * (place + 0.5)) / height
            style = {**entry.style(), "va": "center_baseline"}
            style["color"] = WARN if entry.excluded else INK
            figure.text((each.left + 0.09) / width, y, entry.text, **style)
            right = (each.left + each.width - 0.09) / width
            figure.text(right, y, entry.share, ha="right", **style)
    return figure
