"""The picture of the attention of several models to one premise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tools.papers.nli import Prediction
from tools.papers.nli_data import LABELS, Pair
from tools.papers.pictures import INK, PAGE, SOFT, Figure, measuring_figure, pyplot, readable

# Inches.
_NAMES = 1.15  # width of the column of names
_LINE = 0.34  # height of a line of words with their weights
_TEXT = 0.18  # height of a line of text
_GAP = 0.09  # between words
_MIDDLE = 0.17  # from the top of a line to the middle of its words
_BELOW = 0.16  # from there down to the weight


class _Place(NamedTuple):
    """Where a word of the premise stands: its line, and the middle of it in inches."""

    line: int
    middle: float


def draw_premise(pair: Pair, models: Mapping[str, Prediction]) -> Figure:
    """Draw a premise once a model (Table 4); darker words have more weight, only zero has no box.

    Args:
        pair: the sentences.
        models: predictions with attention, by name.
    """
    figure, width_of = measuring_figure()
    words = [readable(word) for word in pair.premise]
    places = _placed([max(width_of(word, fontsize=8), 0.17) for word in words])
    texts = [f"hypothesis: {' '.join(pair.hypothesis)}", f"label: {LABELS[pair.label]}"]
    block = _LINE * (places[-1].line + 1) + 0.12
    height = _TEXT * len(texts) + len(models) * block
    figure.set_size_inches(PAGE, height)
    for number, text in enumerate(texts):
        y = 1 - (0.09 + _TEXT * number) / height
        figure.text(0, y, text, fontsize=8, va="center", wrap=True)
    for number, (name, prediction) in enumerate(models.items()):
        top = height - _TEXT * len(texts) - number * block
        label = LABELS[prediction.label]
        for offset, text, colour in ((_MIDDLE, name, INK), (0.31, label, SOFT)):
            figure.text(0, (top - offset) / height, text, fontsize=7, va="center", color=colour)
        weights = prediction.attention or []
        for word, weight, place in zip(words, weights, places, strict=True):
            _draw_word(figure, word, weight, place, top, height)
    return figure


def _placed(widths: Sequence[float]) -> list[_Place]:
    """Return the places of words of these widths, in as many lines as they need."""
    places = []
    line = 0
    left = 0.0
    for width in widths:
        if left and left + width > PAGE - _NAMES:
            line += 1
            left = 0.0
        places.append(_Place(line, left + width / 2))
        left += width + _GAP
    return places


def _draw_word(
    figure: Figure, word: str, weight: float, place: _Place, top: float, height: float
) -> None:
    """Draw a word and its weight, which is below it; `top` and `height` are in inches."""
    x = (_NAMES + place.middle) / PAGE
    y = top - _MIDDLE - _LINE * place.line
    style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 8}
    text = figure.text(x, y / height, word, **style)
    if weight > 0:
        face = pyplot.get_cmap("Blues")(0.15 + 0.75 * min(1.0, weight))
        text.set_bbox({"boxstyle": "square,pad=0.18", "fc": face, "ec": INK, "lw": 0.4})
        text.set_color("white" if weight > 0.6 else INK)
        style = {"ha": "center", "fontsize": 5.5, "color": SOFT}
        figure.text(x, (y - _BELOW) / height, f"{weight:.2f}", **style)
