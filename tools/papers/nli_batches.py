"""Pairs of sentences as ids, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tools.papers.nli_data import SYMBOLS, Pair

UNKNOWN = SYMBOLS.index("<unk>")
DELIMITER = SYMBOLS.index("<s>")  # begins a hypothesis, as in the authors' code


class Batch(NamedTuple):
    """Pairs as tensors; sentences are padded with 0, which nothing reads.

    Attributes:
        premises: `(batch, length)` ids.
        premise_lengths: `(batch,)`.
        hypotheses: `(batch, length)` ids, the first that of the delimiter.
        hypothesis_lengths: `(batch,)`, with the delimiter.
        labels: `(batch,)`.
    """

    premises: Tensor
    premise_lengths: Tensor
    hypotheses: Tensor
    hypothesis_lengths: Tensor
    labels: Tensor


class Encoded(NamedTuple):
    """A pair as ids.

    Attributes:
        premise: `(words,)`.
        hypothesis: `(words + 1,)`, the first that of the delimiter.
        label: an index of `LABELS`.
    """

    premise: Tensor
    hypothesis: Tensor
    label: int


def encode(pairs: Sequence[Pair], words: Sequence[str]) -> list[Encoded]:
    """Return the ids of pairs; `words` is the vocabulary in the order of ids."""
    ids = {word: number for number, word in enumerate(words)}
    encoded = []
    for pair in pairs:
        premise = [ids.get(word, UNKNOWN) for word in pair.premise]
        hypothesis = [DELIMITER, *(ids.get(word, UNKNOWN) for word in pair.hypothesis)]
        encoded.append(Encoded(torch.tensor(premise), torch.tensor(hypothesis), pair.label))
    return encoded


def make_batch(encoded: Sequence[Encoded]) -> Batch:
    """Pad encoded pairs."""
    premises = [pair.premise for pair in encoded]
    hypotheses = [pair.hypothesis for pair in encoded]
    return Batch(
        premises=pad_sequence(premises, batch_first=True),
        premise_lengths=_lengths(premises),
        hypotheses=pad_sequence(hypotheses, batch_first=True),
        hypothesis_lengths=_lengths(hypotheses),
        labels=torch.tensor([pair.label for pair in encoded]),
    )


def _lengths(sentences: Sequence[Tensor]) -> Tensor:
    """Return the lengths of sentences, `(batch,)`."""
    return torch.tensor([len(sentence) for sentence in sentences])
