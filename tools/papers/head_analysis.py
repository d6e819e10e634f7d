"""Analysis of the attention heads of one Transformer, which `heads.py` prints and draws."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.checkpoint import load
from onmt_entmax.errors import UserError
from onmt_entmax.nn.transformer import ATTENTION_KINDS
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator
from tools.papers.corpus_measures import Measures
from tools.papers.forced_steps import read_pairs
from tools.papers.head_attention import attend, head_alphas
from tools.papers.head_examples import Examples
from tools.papers.head_maps import Shown


class Analysis(NamedTuple):
    """The analysis of one model.

    Attributes:
        measures: of all heads by kind of attention, with the model's folder and the number of
            sentences; the model's part of heads.json.
        examples: attention maps to draw, by picture.
    """

    measures: dict[str, Any]
    examples: dict[str, list[Shown]]


def analyse(
    options: argparse.Namespace, folder: Path, name: str, words: frozenset[str]
) -> Analysis:
    """Force a model along the targets, and measure its heads.

    Args:
        options: of the command `heads`: texts, transforms, limit and batch size.
        folder: of the model.
        name: of the model, for titles.
        words: interrogative words of the source's language.

    Raises:
        UserError: a file cannot be read, or the model is no Transformer with such attention.
    """
    loaded = load(folder)
    alphas = head_alphas(loaded.model)
    if "decoder" not in alphas:
        raise UserError(f"{folder}: is no Transformer with heads in all attention")
    translator = Translator([loaded], SearchTask(), options.transforms)
    pairs = read_pairs(translator, options.source, options.target, options.limit)
    if all(len(source) == 1 for source, _ in pairs):
        raise UserError(f"{options.source}: no sentence has two tokens, so no head has a choice")
    measures = {kind: Measures(kind, alphas[kind], words) for kind in ATTENTION_KINDS}
    vocabulary = loaded.vocabularies.target
    for index, weights in attend(loaded, pairs, options.batch_size):
        source, target = pairs[index]
        target_queries = vocabulary.decode([vocabulary.bos, *target])
        for kind, of_kind in measures.items():
            queries = source if kind == "encoder" else target_queries
            of_kind.add(index, weights[kind], queries)  # weights (layers, heads, queries, keys)
    summaries: dict[str, Any] = {kind: of_kind.summary() for kind, of_kind in measures.items()}
    examples = Examples(name, loaded, pairs)
    return Analysis(
        measures={"model": str(folder), "sentences": len(pairs), **summaries},
        examples={
            **examples.of_merging_and_position(summaries["encoder"]),
            **examples.of_interrogation(summaries["encoder"], words),
            **examples.of_contrast(measures["encoder"]),
        },
    )
