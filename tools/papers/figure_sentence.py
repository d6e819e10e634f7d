"""Models run along a sentence, and the figure of attention (Peters et al. 2019, Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onmt_entmax.data.batch import make_batch
from onmt_entmax.errors import UserError
from onmt_entmax.report.lattice import Node, build_lattice
from onmt_entmax.translator import Translator
from tools.papers.heat_maps import heat_map, heat_scale
from tools.papers.pictures import PAGE, Figure, pyplot

LISTED = 8  # tokens of each distribution that are listed; the rest is summed


class Sentence(NamedTuple):
    """A source, a target, and a model's distributions along the target.

    Attributes:
        source: its tokens.
        target: its tokens, and the end symbol.
        nodes: the distribution at each target token.
        names: the target vocabulary, in the order of ids.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    nodes: tuple[Node, ...]
    names: tuple[str, ...]


def sentence(
    folders: Sequence[Path],
    source: str,
    target: str | None = None,
    transforms: Sequence[str] | None = None,
) -> Sentence:
    """Run models along a target, or along their own best output if there is none.

    Args:
        folders: of the models, which are averaged.
        source: text.
        target: text.
        transforms: of both texts, instead of those of the training.

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
