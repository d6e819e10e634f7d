"""Heat maps of single attention heads, for `heads.py` (Correia et al. 2019, Figures 7 to 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tools.papers.head_attention import Floats
from tools.papers.heat_maps import heat_map, heat_scale
from tools.papers.pictures import PAGE
from tools.papers.plotting import Figure, pyplot

# Inches.
LARGEST_CELL = 0.17
BESIDE = 0.75  # room for tokens at the left of a map
ABOVE = 0.95  # room for title and tokens above it


class HeadMap(NamedTuple):
    """A head's attention in one sentence.

    Attributes:
        title: of its panel.
        weights: `(queries, keys)`.
        tokens: of the sentence, which are queries and keys.
    """

    title: str
    weights: Floats
    tokens: Sequence[str]


def draw_heads(maps: Sequence[HeadMap], across: int) -> Figure:
    """Draw attention maps of heads, at most `across` side by side (Figures 7 to 10)."""
    across = min(len(maps), across)
    rows = math.ceil(len(maps) / across)
    longest = max(len(example.tokens) for example in maps)
    cell = min(LARGEST_CELL, (PAGE / across - BESIDE) / longest)
    size = (PAGE, (cell * longest + ABOVE) * rows)
    figure, axes = pyplot.subplots(rows, across, figsize=size, squeeze=False)
    for axis, example in zip(axes.flat, maps, strict=False):  # the last panels may stay empty
        image = heat_map(axis, example.weights, example.tokens, example.tokens, cell)
        axis.set_title(example.title, fontsize=7)
    for axis in axes.flat[len(maps) :]:
        axis.set_visible(False)
    heat_scale(figure, image, axes)
    return figure
