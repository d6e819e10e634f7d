"""Steppers with which searches and ensembles run on the models of `tests.search.tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.support import as_support
from onmt_entmax.search import EnsembleStepper
from onmt_entmax.search.stepper import Step
from tests.search.tables import BOS, EOS, Model


def table_attention(prefix: Sequence[int]) -> float:
    """Return the weight of the source position after a prefix; it tells prefixes apart."""
    return sum(prefix) + 10.0 * len(prefix)


class TableStepper:
    """Steps through models, with the methods of `search.stepper.Stepper`.

    A batch is a list of models, one for each sentence. A state is the list of (model, prefix) of
    its rows; the prefix is None before the start symbol.

    A step returns either all tokens or the support alone. The two forms alternate, so that each
    search meets both.

    Args:
        vocabulary_size: number of tokens of all models.
        excluded: tokens that no sequence contains.
        dtype: type of the log-probabilities.
        attention: whether steps return their attention: to one source position, with the weight
            `table_attention`.
        dense: whether the models count as softmax models; else a search may read supports alone.
        can_join: whether states with prefixes of different lengths can be joined.

    Attributes:
        rows: prefixes that were computed.
    """

    def __init__(
        self,
        vocabulary_size: int = 5,
        excluded: tuple[int, ...] = (BOS,),
        dtype: torch.dtype = torch.float64,
        attention: bool = False,
        dense: bool = False,
        can_join: bool = True,
    ) -> None:
        self.bos, self.eos, self.excluded = BOS, EOS, excluded
        self.vocabulary_size = vocabulary_size
        self.dense, self.can_join = dense, can_join
        self.dtype = dtype
        self.attention = attention
        self.rows = 0
        self._calls = 0

    def start(self, batch: list[Model]) -> Any:
        return [(model, None) for model in batch]

    def source_lengths(self, batch: list[Model]) -> list[int]:
        return [model.source_length for model in batch]

    def step(self, state: Any, tokens: Tensor) -> Step:
        self.rows += len(state)
        self._calls += 1
        after = []
        for (model, prefix), token in zip(state, tokens.tolist(), strict=True):
            assert prefix is not None or token == BOS
            after.append((model, () if prefix is None else (*prefix, token)))
        log_probs = torch.tensor(
            [model.log_probs(prefix) for model, prefix in after], dtype=self.dtype
        )
        attention = None
        if self.attention:
            attention = torch.tensor([[table_attention(prefix)] for _, prefix in after])
        return Step(as_support(log_probs) if self._calls % 2 else log_probs, attention, after)

    def select(self, state: Any, rows: Tensor) -> Any:
        return [state[row] for row in rows.tolist()]

    def join(self, states: Any) -> Any:
        return [row for state in states for row in state]

    def double(self) -> TableStepper:
        return self


class MemberStepper(TableStepper):
    """A member of an ensemble: each has a model of its own, whatever the batch."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.vocabulary_size)
        self.model = model

    def start(self, batch: list[Any]) -> Any:
        return super().start([self.model] * len(batch))


def ensemble_of(models: Sequence[Model]) -> EnsembleStepper:
    """Return the ensemble of some models; the sentences of its batches may be anything."""
    return EnsembleStepper([MemberStepper(model) for model in models])
