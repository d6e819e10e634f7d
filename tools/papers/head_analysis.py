"""Analysis of the attention heads of one Transformer, which `heads.py` prints and draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.errors import UserError
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator
from tools.papers.corpus_measures import (
    EncoderMeasures,
    Measures,
    ModelMeasures,
    SelfAttentionMeasures,
)
from tools.papers.forced_steps import Pair, ParallelText, read_pairs
from tools.papers.head_attention import attend, head_alphas
from tools.papers.head_examples import Examples
from tools.papers.head_maps import HeadMap
from tools.papers.head_summary import ModelSummary


class Analysis(NamedTuple):
    """The analysis of one model.

    Attributes:
        measures: measures of all heads; the model's part of heads.json.
        examples: attention maps to draw, by the name of their picture, which has at least one.
    """

    measures: ModelSummary
    examples: dict[str, list[HeadMap]]


def analyse(
    folder: Path,
    name: str,
    text: ParallelText,
    *,
    interrogatives: frozenset[str],
    batch_size: int,
) -> Analysis:
    """Force a model along the targets of a text, and measure its heads.

    Args:
        folder: folder of the model.
        name: name of the model, for titles.
        text: sources and targets.
        interrogatives: interrogative words of the source's language, in lower case.
        batch_size: pairs of a batch.

    Raises:
        UserError: a file cannot be read, or the model is no Transformer with such attention.
    """
    loaded = load(folder)
    if "decoder" not in head_alphas(loaded.model):
        raise UserError(f"{folder}: is no Transformer with heads in all attention")
    translator = Translator([loaded], SearchTask(), text.transforms)
    pairs = read_pairs(translator, text)
    if all(len(source) == 1 for source, _ in pairs):
        raise UserError(f"{text.source}: no sentence has two tokens, so no head has a choice")
    measures = _measure(loaded, pairs, interrogatives, batch_size)
    summary = _summary(folder, len(pairs), measures)
    encoder = summary["encoder"]
    examples = Examples(name, loaded, pairs)
    maps = {
        "merging": [examples.merging_map(encoder)],
        "positional": [examples.positional_map(encoder)],
        "interrogation": examples.interrogation_maps(encoder, interrogatives),
        "contrast": examples.contrast_maps(measures.encoder),
    }
    return Analysis(summary, {picture: drawn for picture, drawn in maps.items() if drawn})


def _summary(folder: Path, sentences: int, measures: ModelMeasures) -> ModelSummary:
    """Return the part of a model in heads.json.

    Args:
        folder: folder of the model.
        sentences: number of sentences that were measured.
        measures: measures of the model.
    """
    return ModelSummary(
        model=str(folder),
        sentences=sentences,
        encoder=measures.encoder.summary(),
        decoder=measures.decoder.summary(),
        context=measures.context.summary(),
    )


def _measure(
    loaded: LoadedModel, pairs: Sequence[Pair], interrogatives: frozenset[str], batch_size: int
) -> ModelMeasures:
    """Return the measures of all heads over the pairs."""
    alphas = head_alphas(loaded.model)
    measures = ModelMeasures(
        encoder=EncoderMeasures(alphas["encoder"], interrogatives),
        decoder=SelfAttentionMeasures(alphas["decoder"], is_causal=True),
        context=Measures(alphas["context"]),
    )
    vocabulary = loaded.vocabularies.target
    for index, weights in attend(loaded, pairs, batch_size):
        source, target = pairs[index]
        target_queries = vocabulary.decode([vocabulary.bos, *target])
        measures.encoder.add(index, weights["encoder"], source)
        measures.decoder.add(index, weights["decoder"], target_queries)
        measures.context.add(index, weights["context"], target_queries)
    return measures
