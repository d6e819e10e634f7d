"""Refuse lines that are too long for the memory or for a Transformer, and name the longest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example
from onmt_entmax.errors import counted
from onmt_entmax.exhaustion import named_exhaustion
from onmt_entmax.free_memory import check_free
from onmt_entmax.memory import search_bytes

_LONG = 1000  # tokens; the memory that shorter lines need is not estimated
_MUCH = 1 << 30  # bytes; users are warned if a batch with a long line needs more
_SHORTEN = "shorten or split it, or lower max_length"


@dataclass(frozen=True)
class LineMemory:
    """Checks, before a search, that its lines fit in memory.

    Attributes:
        networks: the configuration of each model, from which the memory of a line follows.
        device: device on which the models compute.
    """

    networks: Sequence[ModelConfig]
    device: torch.device

    @contextmanager
    def limited(self, examples: Sequence[Example], sentences: int) -> Iterator[None]:
        """Refuse the longest line of a block if it is too long; warn if it needs much memory.

        Args:
            examples: the lines that the block reads.
            sentences: largest number of lines in a batch.

        Raises:
            TooLargeError: names the longest line, if it is too long for the memory or a
                Transformer.
        """
        with named_exhaustion(lambda: _longest(examples), _SHORTEN):
            length = max(map(_length, examples), default=0)
            if length >= _LONG:
                self._check_free(examples, min(sentences, len(examples)), length)
            yield

    def _check_free(self, examples: Sequence[Example], sentences: int, length: int) -> None:
        """Check that a batch of long sentences fits in memory.

        Args:
            examples: the lines; messages name the longest.
            sentences: the number of sentences in the batch.
            length: tokens of the longest line.

        Raises:
            MemoryError: if it does not fit.
        """
        needed = sum(search_bytes(network, sentences, length) for network in self.networks)
        check_free(needed, self.device)
        if needed > _MUCH:
            warnings.warn(f"{_longest(examples)} needs about {needed / 1e9:,.1f} GB", stacklevel=3)


def _length(example: Example) -> int:
    """Return the number of tokens of the longer side."""
    return max(len(example.source), len(example.target or ()))


def _longest(examples: Sequence[Example]) -> str:
    """Return the longest line as messages name it, such as `line 3 (1,200 tokens)`."""
    longest = max(examples, key=_length)
    return f"line {longest.index + 1} ({counted(_length(longest), 'token')})"
