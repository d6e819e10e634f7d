"""Forced decoding with attention: how many outputs and source positions a model leaves possible at
every token of given targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from parallel.pairs import read_pairs

from onmt_entmax.errors import UserError
from onmt_entmax.search.score import along_targets
from onmt_entmax.text.batch import Example, group_by_length, make_batch
from onmt_entmax.text.corpus import numericalise
from onmt_entmax.translation import Translator


@dataclass(frozen=True)
class Pair:
    """A source and a target as token ids, the target without start and end symbol."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Steps:
    """What the model leaves possible at each token of a target, and at its end."""

    targets: tuple[int, ...]
    """Ids, the end symbol included."""
    outputs: tuple[int, ...]
    """How many tokens have positive probability."""
    attended: tuple[int, ...]
    """How many source positions have positive weight."""


def read(translator: Translator, source: Path, target: Path) -> list[Pair]:
    """The pairs of two files, as a model reads and writes them.

    Raises:
        UserError: a file cannot be read, they differ in length, or a transform drops a line.
    """
    vocabularies, pairs = translator.vocabularies, []
    for number, (src, tgt) in enumerate(read_pairs(source, target), 1):
        words = translator.reader.preprocess(" ".join(src), " ".join(tgt))
        if not words[0]:
            raise UserError(f"{source}: nothing is left of line {number} after -transforms")
        ids = numericalise(words, vocabularies, number)
        pairs.append(Pair(list(ids.source), list(ids.target or ())))
    if not pairs:
        raise UserError(f"{source}: there is no sentence in it")
    return pairs


def forced_steps(translator: Translator, pairs: Sequence[Pair], batch_size: int) -> Iterator[Steps]:
    """What is possible along each target, short sources first.

    Args:
        translator: a model, or several as an ensemble, with attention.
        pairs: sources, and the targets that are forced.
        batch_size: how many at a time.
    """
    examples = [Example(pair.source, pair.target, i) for i, pair in enumerate(pairs)]
    for group in group_by_length(examples, batch_size, "sents"):
        yield from _steps(translator, group)


@torch.inference_mode()
def _steps(translator: Translator, examples: Sequence[Example]) -> Iterator[Steps]:
    stepper = translator.stepper
    batch = make_batch(examples, translator.vocabularies)
    by_index = {example.index: example for example in examples}
    ordered = [by_index[index] for index in batch.indices]
    targets = [example.target or [] for example in ordered]
    outputs: list[list[int]] = [[] for _ in targets]
    attended: list[list[int]] = [[] for _ in targets]
    for sentences, _, step in along_targets(stepper, batch, targets):
        supports = (step.log_probs > -torch.inf).sum(1).tolist()
        rows = step.attention_rows() or [torch.empty(0)] * len(sentences)
        for i, support, row in zip(sentences, supports, rows, strict=True):
            # Softmax gives every position weight; what rounds to zero is counted all the same.
            dense = translator.dense_attention and len(row)
            length = len(ordered[i].source)
            outputs[i].append(support)
            attended[i].append(length if dense else int(row[:length].count_nonzero()))
    for target, *counts in zip(targets, outputs, attended, strict=True):
        yield Steps((*target, stepper.eos), *map(tuple, counts))
