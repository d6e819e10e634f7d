"""Beam search of tables: batches, and the bound on what was not listed."""

from typing import Any

import pytest
import torch

from onmt_entmax.search import SearchConfig, Step, beam_search
from onmt_entmax.search.state import SearchState
from tests.search.checks import check
from tests.search.enumeration import enumerate_support
from tests.search.table_steppers import TableStepper
from tests.search.tables import Table, random_tables


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_batch_gives_what_its_sentences_give_alone(n_best: int) -> None:
    tables = random_tables(60)
    config = SearchConfig(beam_size=4, n_best=n_best, max_length=5)
    together = beam_search(TableStepper(), tables, config)
    assert together == [beam_search(TableStepper(), [table], config)[0] for table in tables]


class ListsAllTokens(TableStepper):
    """Steps that list every token, so that expansion alone chooses the candidates.

    Of a step that lists the support alone, all tokens are candidates.
    """

    def step(self, state: Any, tokens: torch.Tensor) -> Step:
        step = super().step(state, tokens)
        return Step(step.log_probs, attention=None, state=step.state)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_every_claim_holds_if_each_prefix_has_one_candidate(
    alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound also covers tokens that are not candidates: less is proven, and nothing wrong."""
    expand = SearchState.expand
    monkeypatch.setattr(SearchState, "expand", lambda self, width: expand(self, 1))
    config = SearchConfig(beam_size=4, n_best=0, max_length=4)
    for table in (Table(seed, alpha, vocabulary_size=6) for seed in range(60)):
        (result,) = beam_search(ListsAllTokens(6), [table], config)
        check(result, enumerate_support(TableStepper(6), [table], 4), config)
