"""The picture of the attention of several models to one premise.

    hypothesis: ...
    label: ...
    model 1     Two  dogs  play  in  the  snow
    its label        0.61  0.39
    model 2     ...

The words have the same places for all models, in as many lines as they need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tools.papers.nli_data import LABELS, Pair
from tools.papers.nli_predictions import Prediction
from tools.papers.pictures import INK, PAGE, SOFT, measuring_figure, readable
from tools.papers.plotting import Figure, pyplot

# Inches.
NAMES = 1.15  # width of the column of names
LINE = 0.34  # height of a line of words with their weights
TEXT = 0.18  # height of a line of text
GAP = 0.09  # between words
NARROWEST = 0.17  # width of a word, at which its weight has room
BETWEEN = 0.12  # between models
# From the top of a model's part.
TO_NAME = 0.17  # also to its first line of words
TO_LABEL = 0.31
TO_WEIGHT = 0.16  # from a word down to its weight

# Points.
WORD_SIZE = 8
NAME_SIZE = 7  # of a model, and of its label
WEIGHT_SIZE = 5.5  # so that a weight has room below a word of `NARROWEST`
# Of the colour map, for weights from just above 0 to 1; the palest one differs from white.
PALEST, DARKEST = 0.15, 0.9
DARK = 0.6  # a word of a larger weight is white on its box


class _Place(NamedTuple):
    """Where a word of the premise stands: its line, and the middle of it in inches."""

    line: int
    middle: float


class _Page(NamedTuple):
    """A figure on which texts are placed in inches from its left and its top.

    Attributes:
        figure: the figure to draw on.
        height: height of the figure.
    """

    figure: Figure
    height: float

    def text(self, x: float, y: float, text: str, **style: Any) -> Any:
        """Write a text and return it; the style names the point of it that is placed."""
        return self.figure.text(x / PAGE, 1 - y / self.height, text, **style)


def draw_premise(pair: Pair, models: Mapping[str, Prediction]) -> Figure:
    """Draw a premise once a model (Table 4); darker words have more weight, only zero has no box.

    Args:
        pair: the sentences.
        models: predictions with attention, by name.
    """
    figure, width_of = measuring_figure()
    words = [readable(word) for word in pair.premise]
    places = _placed([max(width_of(word, fontsize=WORD_SIZE), NARROWEST) for word in words])
    heads = [f"hypothesis: {' '.join(pair.hypothesis)}", f"label: {LABELS[pair.label]}"]
    height_of_model = LINE * (places[-1].line + 1) + BETWEEN
    page = _Page(figure, TEXT * len(heads) + height_of_model * len(models))
    figure.set_size_inches(PAGE, page.height)
    for number, head in enumerate(heads):
        page.text(0, TEXT * (number + 0.5), head, fontsize=WORD_SIZE, va="center", wrap=True)
    top = TEXT * len(heads)
    for name, prediction in models.items():
        page.text(0, top + TO_NAME, name, fontsize=NAME_SIZE, va="center", color=INK)
        label = LABELS[prediction.label]
        page.text(0, top + TO_LABEL, label, fontsize=NAME_SIZE, va="center", color=SOFT)
        for word, weight, place in zip(words, prediction.attention or [], places, strict=True):
            y = top + TO_NAME + LINE * place.line
            _draw_word(page, NAMES + place.middle, y, word, weight)
        top += height_of_model
    return figure


def _placed(widths: Sequence[float]) -> list[_Place]:
    """Return the places of words of these widths, in as many lines as they need."""
    places = []
    line = 0
    left = 0.0
    for width in widths:
        if left and left + width > PAGE - NAMES:
            line += 1
            left = 0.0
        places.append(_Place(line, left + width / 2))
        left += width + GAP
    return places


def _draw_word(page: _Page, x: float, y: float, word: str, weight: float) -> None:
    """Draw a word whose middle is at a point, in a box unless its weight is zero."""
    text = page.text(x, y, word, ha="center", va="center_baseline", fontsize=WORD_SIZE)
    if weight > 0:
        shade = PALEST + (DARKEST - PALEST) * min(1.0, weight)
        face = pyplot.get_cmap("Blues")(shade)
        text.set_bbox({"boxstyle": "square,pad=0.18", "fc": face, "ec": INK, "lw": 0.4})
        text.set_color("white" if weight > DARK else INK)
        shown = f"{weight:.2f}"
        page.text(x, y + TO_WEIGHT, shown, ha="center", fontsize=WEIGHT_SIZE, color=SOFT)
