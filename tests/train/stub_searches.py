"""Searches of validations that find what a test gives them."""

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace

import pytest

from onmt_entmax.data.batch import Batch
from onmt_entmax.search import SearchConfig
from onmt_entmax.train import evaluation

FindTokens = Callable[[Batch, SearchConfig], Iterable[Sequence[int]]]


def stub_search(monkeypatch: pytest.MonkeyPatch, find: FindTokens) -> None:
    """Let a function find the tokens of the best output for each sentence of a batch."""

    def search(
        stepper: object, batch: Batch, config: SearchConfig, **_: object
    ) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(best=SimpleNamespace(tokens=tuple(tokens)))
            for tokens in find(batch, config)
        ]

    monkeypatch.setattr(evaluation, "beam_search", search)
