"""Attention over the words of a premise, as in Martins and Astudillo (2016), Table 4."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onmt_entmax.figures.style import INK, PAGE, SOFT, measuring_figure, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = 1.15  # width of the column of names, inches
_LINE = 0.34  # height of a line of words with their weights
_GAP = 0.09  # between words
_DIGITS = 0.17  # width of a weight
_SIZE = 8


@dataclass(frozen=True)
class Attended:
    """The attention of a model to a premise.

    Attributes:
        name: of the model.
        prediction: its label.
        weights: of each word.
    """

    name: str
    prediction: str
    weights: Sequence[float]


def draw_premise(
    premise: Sequence[str], hypothesis: Sequence[str], label: str, models: Sequence[Attended]
) -> Figure:
    """Draw a premise once a model; darker words have more weight, and only zero has no box.

    Args:
        premise: its words.
        hypothesis: its words.
        label: the right label.
        models: at least one.
    """
    from matplotlib import colormaps
    from matplotlib.lines import Line2D

    figure, measured = measuring_figure()
    width_of = functools.partial(measured, fontsize=_SIZE)
    words = [readable(word) for word in premise]
    places, line, left = [], 0, 0.0  # line and left edge of each word
    widths = [max(width_of(word), _DIGITS) for word in words]
    for width in widths:
        if left and left + width > PAGE - _NAMES:
            line, left = line + 1, 0.0
        places.append((line, left))
        left += width + _GAP
    block = _LINE * (line + 1)
    lines = _wrapped([f"hypothesis: {' '.join(hypothesis)}", f"label: {label}"], width_of)
    height = 0.18 * len(lines) + len(models) * (block + 0.12)
    figure.set_size_inches(PAGE, height)
    for number, text in enumerate(lines):
        y = 1 - (0.09 + 0.18 * number) / height
        figure.text(0, y, text, fontsize=_SIZE, va="center", color=INK)
    for number, model in enumerate(models):
        top = height - 0.18 * len(lines) - number * (block + 0.12)
        rule = [(top - 0.03) / height] * 2
        figure.add_artist(Line2D([0, 1], rule, color=SOFT, linewidth=0.4))
        for offset, text, colour in ((0.17, model.name, INK), (0.31, model.prediction, SOFT)):
            figure.text(0, (top - offset) / height, text, fontsize=7, va="center", color=colour)
        for word, weight, width, (line, left) in zip(
            words, model.weights, widths, places, strict=True
        ):
            x = (_NAMES + left + width / 2) / PAGE
            y = top - 0.17 - _LINE * line
            shown = figure.text(
                x, y / height, word, fontsize=_SIZE, ha="center", va="center_baseline"
            )
            if weight > 0:
                dark = min(1.0, weight)
                face = colormaps["Blues"](0.15 + 0.75 * dark)
                shown.set_bbox({"boxstyle": "square,pad=0.18", "fc": face, "ec": INK, "lw": 0.4})
                shown.set_color("white" if dark > 0.6 else INK)
                figure.text(
                    x, (y - 0.16) / height, f"{weight:.2f}", fontsize=5.5, ha="center", color=SOFT
                )
    return figure


def _wrapped(texts: Sequence[str], width_of: Callable[[str], float]) -> list[str]:
    """Return texts in lines that fit on the page."""
    lines = []
    for text in texts:
        line = ""
        for word in text.split():
            longer = f"{line} {word}".strip()
            if line and width_of(longer) > PAGE:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines
