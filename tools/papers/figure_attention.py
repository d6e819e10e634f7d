"""The figure of attention (Peters et al. 2019, Figure 5)."""

from __future__ import annotations

import numpy as np

from onmt_entmax.errors import UserError
from tools.papers.figure_sentence import Sentence
from tools.papers.heat_maps import heat_map, heat_scale
from tools.papers.pictures import PAGE
from tools.papers.plotting import Figure, pyplot

# Inches.
LARGEST_CELL = 0.19
ROOM_AT_SIDES = 1.5  # for target tokens at the left, and for the scale at the right
ROOM_ABOVE = 0.9  # for source tokens


def draw_attention(drawn: Sentence) -> Figure:
    """Draw attention as a heat map, rows for target tokens and columns for source tokens.

    Raises:
        UserError: the model has no attention.
    """
    if drawn.nodes[0].attention is None:
        raise UserError("the model has no attention")
    columns, lines = len(drawn.source), len(drawn.target)
    weights = np.array([node.attention for node in drawn.nodes])[:, :columns]  # (lines, columns)
    cell = min(LARGEST_CELL, (PAGE - ROOM_AT_SIDES) / columns)
    size = (cell * columns + ROOM_AT_SIDES, cell * lines + ROOM_ABOVE)
    figure, axis = pyplot.subplots(figsize=size)
    image = heat_map(axis, weights, drawn.target, drawn.source, cell)
    heat_scale(figure, image, axis)
    return figure
