"""Invalid input to a search is refused, never certified."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from onmt_entmax.nn.support import as_support
from onmt_entmax.search import (
    Constraints,
    SearchConfig,
    Step,
    beam_search,
    exact_search,
    score_targets,
)
from onmt_entmax.search.expansion import expand
from onmt_entmax.search.stepper import SearchError
from tests.search.networks import network, sentences, stepper
from tests.search.tables import EOS, Table, TableStepper

TABLE = Table(0, 1.5)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("sparse", [False, True])
def test_a_nan_is_not_taken_for_impossible(width: int, place: int, sparse: bool) -> None:
    log_probs = torch.tensor([[-0.7, -0.8, -0.9, -torch.inf, -torch.inf]])
    log_probs[0, place] = math.nan
    with pytest.raises(SearchError, match="nan"):
        expand(as_support(log_probs) if sparse else log_probs, 2, width)


class Wrong(TableStepper):
    """A stepper whose steps are not log-probabilities of its vocabulary."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = change

    def step(self, state: Any, tokens: torch.Tensor) -> Step:
        found = super().step(state, tokens)
        return Step(self.change(found.log_probs), None, found.state)


@pytest.mark.parametrize("search", [beam_search, exact_search])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda log_probs: log_probs.exp() + 0.2, "must return natural logarithms"),
        (lambda log_probs: torch.cat([log_probs, log_probs], 1), "size 10, the vocabulary has 5"),
        (lambda log_probs: log_probs[:, :3], "of size 3, "),
    ],
)
def test_steps_that_are_no_log_probabilities(search: Any, change: Any, message: str) -> None:
    with pytest.raises(SearchError, match=message):
        search(Wrong(change), [TABLE], SearchConfig(beam_size=20))


@pytest.mark.parametrize("token", [-1, 5])
def test_invalid_tokens(token: int) -> None:
    message = f"token {token} is not in the vocabulary of 5"
    with pytest.raises(ValueError, match=message):
        beam_search(
            TableStepper(),
            [TABLE],
            SearchConfig(constraints=Constraints(banned=frozenset({token}))),
        )
    with pytest.raises(ValueError, match=message):
        beam_search(TableStepper(excluded=(0, token)), [TABLE], SearchConfig())
    with pytest.raises(ValueError, match=message):
        beam_search(TableStepper(), [TABLE], SearchConfig(), [[2, token]])


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ([[2, EOS, 3]], "end symbol"),
        ([[2, 0]], "token 0, which no output has"),
        ([[2, 3, 2, 3]], "4 tokens, max_length is 3"),
        ([], "0 prefixes for 1 sentence"),
        ([[2], [3]], "2 prefixes for 1 sentence$"),
    ],
)
def test_invalid_prefixes(prefixes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        beam_search(TableStepper(), [TABLE], SearchConfig(max_length=3), prefixes)
    if len(prefixes) == 1:
        with pytest.raises(ValueError, match=message):
            exact_search(TableStepper(), [TABLE], SearchConfig(max_length=3), prefix=prefixes[0])


def test_wrong_numbers_of_sentences() -> None:
    with pytest.raises(ValueError, match="one sentence, not of 2"):
        exact_search(TableStepper(), [TABLE, TABLE], SearchConfig())
    with pytest.raises(ValueError, match="targets has 1 for 2 sentences"):
        score_targets(TableStepper(), [TABLE, TABLE], [[2]])


@pytest.mark.parametrize("kind", ["input-feeding", "gru", "transformer", "average"])
def test_threads_share_a_model_and_nothing_else(kind: str) -> None:
    """OpenNMT-py's decoders keep a state, so every search needs its own."""
    shared = stepper(network(kind, 1.5, seed=1))
    batches = sentences(4, seed=2)

    def answers(batch: Any) -> list[tuple[Any, float]]:
        (found,) = beam_search(shared, batch, SearchConfig(3, n_best=2, max_length=6))
        return [(each.tokens, each.log_prob) for each in found.hypotheses]

    alone = [answers(batch) for batch in batches]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(answers, batches * 6))
    finally:
        sys.setswitchinterval(before)
    assert together == alone * 6
