"""Steps of decoding along targets, with their nonzeros of attention and output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.data.batch import make_batch
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned
from onmt_entmax.search.forced import along_targets
from onmt_entmax.translator import Translator


class ParallelText(NamedTuple):
    """Files of a text and its translation.

    Attributes:
        source: file of source sentences.
        target: file with a line for each line of `source`.
        transforms: transforms of both files; None: those of the model's training.
        limit: number of pairs that are read; None: all.
    """

    source: Path
    target: Path
    transforms: Sequence[str] | None = None
    limit: int | None = None


class Pair(NamedTuple):
    """A sentence pair.

    Attributes:
        source: its tokens.
        target: ids of its tokens, without start and end symbol.
    """

    source: list[str]
    target: list[int]


def read_pairs(translator: Translator, text: ParallelText) -> list[Pair]:
    """Return the sentence pairs of a text; lines after its limit are not looked at.

    Args:
        translator: its reader divides lines into tokens, by the transforms that it was made with.
        text: the files.

    Raises:
        UserError: a file cannot be read or is empty, they differ in length, or a line is blank.
    """
    pairs: list[Pair] = []
    lines = islice(zip(*read_aligned(text.source, text.target), strict=True), text.limit)
    for number, (source_line, target_line) in enumerate(lines, 1):
        source_tokens, target_tokens = translator.reader.preprocess(source_line, target_line)
        if not source_tokens:
            raise UserError(f"{text.source}: line {number} is blank, or nothing is left of it")
        target_ids = translator.vocabularies.target.encode(target_tokens)
        pairs.append(Pair(source_tokens, target_ids))
    if not pairs:
        raise UserError(f"{text.source}: there is no sentence in it")
    return pairs


class ForcedStep(NamedTuple):
    """What is counted at a step of decoding along a target.

    Attributes:
        position: position in the target, from 1.
        token: id of the target's token there.
        attended: source positions with attention.
        possible: tokens of positive probability.
    """

    position: int
    token: int
    attended: int
    possible: int


@torch.inference_mode()
def steps_of(
    translator: Translator, pairs: Sequence[Pair], batch_size: int
) -> Iterator[ForcedStep]:
    """Yield each step of decoding along the targets of pairs, the shortest source first.

    Args:
        translator: the translator whose models decode.
        pairs: sources and targets.
        batch_size: pairs of a batch.
    """
    by_length = sorted(pairs, key=lambda pair: len(pair.source))
    for first in range(0, len(by_length), batch_size):
        yield from _steps_of_batch(translator, by_length[first : first + batch_size])


def _steps_of_batch(translator: Translator, pairs: Sequence[Pair]) -> Iterator[ForcedStep]:
    """Yield each step of decoding along the targets of the pairs of a batch."""
    examples = [
        translator.reader.encode(pair.source, index).example for index, pair in enumerate(pairs)
    ]
    batch = make_batch(examples, translator.vocabularies)
    in_order = [pairs[index] for index in batch.indices]
    walk = along_targets(translator.stepper, batch, [pair.target for pair in in_order])
    for position, (sentences, tokens, step) in enumerate(walk, 1):
        supports = (step.log_probs > -torch.inf).sum(1).tolist()
        # A model without attention attends to no position: its rows are empty.
        rows = step.attention_rows() or [torch.empty(0)] * len(sentences)
        for sentence, token, support, row in zip(sentences, tokens, supports, rows, strict=True):
            weights = row[: len(in_order[sentence].source)]  # without padding
            # All weights of softmax are positive, even if one rounds to zero.
            attended = len(weights) if translator.dense_attention else int(weights.count_nonzero())
            yield ForcedStep(position, token, attended, support)
