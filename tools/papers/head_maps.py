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
ROOM_AT_LEFT = 0.75  # left of each map, for tokens
ROOM_ABOVE = 0.95  # above each map, for title and tokens
TITLE_SIZE = 7  # points; titles have two lines, and maps may be three side by side


class HeadMap(NamedTuple):
    """A head's attention in one sentence.

    Attributes:
        title: title of its panel.
        weights: `(queries, keys)`.
        tokens: tokens of the sentence, which are queries and keys.
    """

    title: str
    weights: Floats
    tokens: Sequence[str]


def draw_heads(maps: Sequence[HeadMap], most_across: int) -> Figure:
    """Draw attention maps of heads in panels, with one scale for all.

    Args:
        maps: at least one; all cells have the same size.
        most_across: panels side by side, at most.
    """
    across = min(len(maps), most_across)
    rows = math.ceil(len(maps) / across)
    longest = max(len(head_map.tokens) for head_map in maps)
    cell = min(LARGEST_CELL, (PAGE / across - ROOM_AT_LEFT) / longest)
    size = (PAGE, (cell * longest + ROOM_ABOVE) * rows)
    figure, axes = pyplot.subplots(rows, across, figsize=size, squeeze=False)
    panels, empty_panels = axes.flat[: len(maps)], axes.flat[len(maps) :]
    images = [
        heat_map(axis, head_map.weights, head_map.tokens, head_map.tokens, cell)
        for axis, head_map in zip(panels, maps, strict=True)
    ]
    for axis, head_map in zip(panels, maps, strict=True):
        axis.set_title(head_map.title, fontsize=TITLE_SIZE)
    for axis in empty_panels:
        axis.set_visible(False)
    heat_scale(figure, images[0], axes)  # all have the same colours, from 0 to 1
    return figure
