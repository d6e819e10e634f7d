"""A beam search of validations whose outputs a test chooses."""

from collections.abc import Callable, Iterable, Sequence
from unittest import mock

import pytest

from onmt_entmax.data.batch import Batch
from onmt_entmax.search import Hypothesis, SearchConfig, SearchResult
from onmt_entmax.train import decoded_measures

FindTokens = Callable[[Batch, SearchConfig], Iterable[Sequence[int]]]
"""Returns the ids of the best output for each sentence of a batch"""


def stub_search(monkeypatch: pytest.MonkeyPatch, find: FindTokens) -> None:
    """Let a function find the best outputs; results of the search have nothing else."""

    def search(
        stepper: object, batch: Batch, config: SearchConfig, **_: object
    ) -> list[SearchResult]:
        return [result_of(tokens) for tokens in find(batch, config)]

    monkeypatch.setattr(decoded_measures, "beam_search", search)


def result_of(tokens: Sequence[int]) -> SearchResult:
    """Return a result with this best output; its probability is 1."""
    best = Hypothesis(tuple(tokens), log_prob=0.0, score=0.0)
    result: SearchResult = mock.NonCallableMock(spec_set=SearchResult, best=best)
    return result
