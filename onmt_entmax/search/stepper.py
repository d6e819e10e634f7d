"""The interface between search and models: log-probabilities of the next token, step by step.

States are values: `step` and `select` return new ones and leave the old ones usable, so that a
search can keep a state and come back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.nn.support import Distribution, Support

OutputFunction = Callable[[Tensor], Distribution]
"""Maps hidden states `(rows, hidden)` to log-probabilities."""


class SearchError(UserError):
    """A model that cannot be searched this way."""


def no_support() -> SearchError:
    """Return the error for a model whose scores are not numbers."""
    return SearchError(
        "the model gives no token a positive probability: its scores are all -inf or nan, "
        "as those of a model whose training diverged"
    )


@dataclass(frozen=True)
class Step:
    """The result of one step for each row."""

    distribution: Distribution
    """Natural log-probabilities of all tokens `(rows, vocabulary_size)`, -inf outside the support,
    or those of the support alone; the caller may overwrite it."""
    attention: Tensor | None
    """`(rows, source length)` on the CPU, if the stepper returns it"""
    state: Any
    """After the step, of the same rows."""
    source_lengths: Tensor | None = None
    """`(rows,)` positions of `attention` that are not padding"""

    @cached_property
    def log_probs(self) -> Tensor:
        """Log-probabilities `(rows, vocabulary)`, -inf outside the support."""
        if isinstance(self.distribution, Support):
            return self.distribution.dense()
        return self.distribution

    def attention_rows(self) -> list[Tensor] | None:
        """Return the attention of each row `(source length,)`, without padding."""
        if self.attention is None:
            return None
        rows = self.attention.unbind(0)
        if self.source_lengths is None:
            return list(rows)
        lengths = self.source_lengths.tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]


class Stepper(Protocol):
    """A model run one token at a time over rows, each of which is one prefix of one sentence.

    A search calls it in `torch.inference_mode`; tokens and rows are on the CPU. Several threads may
    search with one stepper if all that changes is in the states.
    """

    bos: int
    """Id of the start symbol."""
    eos: int
    """Id of the end symbol."""
    excluded: tuple[int, ...]
    """Ids that no output contains: padding and `bos`. A softmax gives them probability all the
    same; a search never takes them, and counts it as excluded."""
    vocabulary_size: int
    dense: bool
    """Whether every token always has positive probability (softmax)."""
    can_join: bool
    """Whether one state may have rows of different lengths."""

    def start(self, batch: Any) -> Any:
        """Return a state with one row for each sentence of the batch, in its order.

        A batch is any object whose `len` is the number of its sentences.
        """
        ...

    def source_lengths(self, batch: Any) -> list[int]:
        """Return the number of source tokens of each sentence of a batch, for a length reward."""
        ...

    def step(self, state: Any, tokens: Tensor) -> Step:
        """Append a token to each row: `tokens` `(rows,)` int64, `bos` at the first step."""
        ...

    def select(self, state: Any, rows: Tensor) -> Any:
        """Return the state of `rows` `(new rows,)` int64, in that order; rows may repeat."""
        ...

    def join(self, states: Sequence[Any]) -> Any:
        """Return one state of all rows, in order; only called if `can_join`."""
        ...

    def double(self) -> Stepper:
        """Return a stepper of the same model in float64, for `verify`."""
        ...
