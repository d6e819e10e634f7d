"""What a search needs of a model: the probabilities of the next token, one step at a time.

States are values: `step` and `select` return new ones and leave the old ones usable, so that a
search may put a state aside and come back to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.nn.output import Distribution, Support

# What a search cannot do.


class SearchError(UserError):
    """A model that cannot be searched as asked."""


def no_support() -> SearchError:
    """The error of a model that gives nothing a probability."""
    return SearchError(
        "the model gives no token a positive probability: its scores are all -inf or nan, "
        "as those of a model whose training diverged"
    )


@dataclass(frozen=True)
class Step:
    """What one step computed for each row."""

    distribution: Distribution
    """Log-probabilities (natural) of all tokens (rows, vocabulary_size), -inf outside the support,
    or those of the support alone; the caller may overwrite it."""
    attention: Tensor | None
    """(rows, source length), where the stepper was asked for it."""
    state: Any
    """The state after the step, for the same rows."""
    source_lengths: Tensor | None = None
    """(rows,) how much of `attention` is not padding, where there is attention."""

    @cached_property
    def log_probs(self) -> Tensor:
        """(rows, vocabulary), float, -inf outside the support."""
        given = self.distribution
        return given.dense() if isinstance(given, Support) else given

    def attention_rows(self) -> list[Tensor] | None:
        """The attention of each row (source length,), without padding."""
        if self.attention is None:
            return None
        rows = self.attention.unbind(0)
        if self.source_lengths is None:
            return list(rows)
        lengths = self.source_lengths.tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]


class Stepper(Protocol):
    """A model that is run one token at a time over rows, each of which holds one prefix of one
    sentence.

    A search calls it in `torch.inference_mode`; tokens and rows are on the CPU. Several threads may
    search with one stepper if it keeps what it computes in the states alone.
    """

    bos: int
    """Id of the token that every prefix starts with."""
    eos: int
    """Id of the token that ends a string."""
    excluded: tuple[int, ...]
    """Ids that have a column but are no symbol of any string: padding and `bos`. No target contains
    them, yet a softmax gives them probability; a search never takes them and counts them as
    excluded by request."""
    vocabulary_size: int
    dense: bool
    """Whether every token always has positive probability (softmax)."""
    can_join: bool
    """Whether rows of different lengths may be in one state."""

    def start(self, batch: Any) -> Any:
        """Return the state of one row for each sentence of the batch, in the batch's order.

        A batch is whatever the stepper takes, if its `len` is the number of its sentences.
        """
        ...

    def step(self, state: Any, tokens: Tensor) -> Step:
        """Append a token to each row. `tokens` (rows,) int64; the first ones are `bos`."""
        ...

    def select(self, state: Any, rows: Tensor) -> Any:
        """Return the state of the given rows (new rows,) int64, in that order, repetitions
        allowed."""
        ...

    def join(self, states: Sequence[Any]) -> Any:
        """Return one state of all rows, in order; only called where `can_join`."""
        ...

    def double(self) -> Stepper:
        """Return a stepper of the same model in float64; only `verify` needs one."""
        ...
