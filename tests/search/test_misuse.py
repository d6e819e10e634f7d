"""Invalid input to a search is refused, never certified."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from onmt_entmax.nn.support import as_support
from onmt_entmax.search import (
    Constraints,
    Request,
    SearchConfig,
    Step,
    Stepper,
    beam_search,
    exact_search,
    score_targets,
    suggest,
)
from onmt_entmax.search.expansion import expand
from onmt_entmax.search.stepper import SearchError
from tests.search.table_steppers import TableStepper
from tests.search.tables import BOS, EOS, Table

TABLE = Table(0, 1.5)
BEST_TWO = SearchConfig(beam_size=2, n_best=2)

Change = Callable[[torch.Tensor], torch.Tensor]
"""What is done to the log-probabilities of a step."""


# --- wrong log-probabilities -----------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("token", range(3))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense rows", "a support"])
def test_a_nan_is_not_taken_for_impossible(width: int, token: int, sparse: bool) -> None:
    log_probs = torch.tensor([[-0.7, -0.8, -0.9, -torch.inf, -torch.inf]])
    log_probs[0, token] = math.nan
    with pytest.raises(SearchError, match="nan"):
        expand(as_support(log_probs) if sparse else log_probs, eos=2, width=width)


class ChangedSteps(TableStepper):
    """A stepper whose steps are not log-probabilities of its vocabulary."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change

    def step(self, state: Any, tokens: torch.Tensor) -> Step:
        step = super().step(state, tokens)
        return Step(self.change(step.log_probs), attention=None, state=step.state)


def probabilities_above_1(log_probs: torch.Tensor) -> torch.Tensor:
    return log_probs.exp() + 0.2


def twice_the_vocabulary(log_probs: torch.Tensor) -> torch.Tensor:
    return torch.cat([log_probs, log_probs], 1)


def a_part_of_the_vocabulary(log_probs: torch.Tensor) -> torch.Tensor:
    return log_probs[:, :3]


def by_beam(stepper: Stepper, config: SearchConfig) -> None:
    beam_search(stepper, [TABLE], config)


def by_exact_search(stepper: Stepper, config: SearchConfig) -> None:
    exact_search(stepper, Request([TABLE]), config)


@pytest.mark.parametrize("search", [by_beam, by_exact_search])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(probabilities_above_1, "must return natural logarithms", id="above 1"),
        pytest.param(twice_the_vocabulary, "size 10, the vocabulary has 5", id="too many"),
        pytest.param(a_part_of_the_vocabulary, "of size 3, ", id="too few"),
    ],
)
def test_steps_that_are_not_log_probabilities_of_the_vocabulary_are_refused(
    search: Callable[[Stepper, SearchConfig], None], change: Change, message: str
) -> None:
    with pytest.raises(SearchError, match=message):
        search(ChangedSteps(change), SearchConfig(beam_size=20))


# --- wrong tokens, prefixes and numbers of sentences -----------------------------------------


@pytest.mark.parametrize("token", [-1, 5])
class TestTokensOutsideTheVocabulary:
    @pytest.fixture
    def message(self, token: int) -> str:
        return f"token {token} is not in the vocabulary of 5"

    def test_cannot_be_banned(self, token: int, message: str) -> None:
        config = SearchConfig(constraints=Constraints(banned=frozenset({token})))
        with pytest.raises(ValueError, match=message):
            beam_search(TableStepper(), [TABLE], config)

    def test_cannot_be_excluded(self, token: int, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            beam_search(TableStepper(excluded=(0, token)), [TABLE], SearchConfig())

    def test_cannot_be_in_prefixes(self, token: int, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            beam_search(TableStepper(), [TABLE], SearchConfig(), [[2, token]])


wrong_prefixes = pytest.mark.parametrize(
    ("prefix", "message"),
    [
        pytest.param([2, EOS, 3], "end symbol", id="an end"),
        pytest.param([2, BOS], "token 0, which no output has", id="a start symbol"),
        pytest.param([2, 3, 2, 3], "4 tokens, max_length is 3", id="too long"),
    ],
)


@wrong_prefixes
def test_a_beam_search_refuses_wrong_prefixes(prefix: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        beam_search(TableStepper(), [TABLE], SearchConfig(max_length=3), [prefix])


@wrong_prefixes
def test_an_exact_search_refuses_wrong_prefixes(prefix: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_search(TableStepper(), Request([TABLE], [prefix]), SearchConfig(max_length=3))


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [([], "0 prefixes for 1 sentence"), ([[2], [3]], "2 prefixes for 1 sentence$")],
)
def test_more_or_fewer_prefixes_than_sentences_are_refused(
    prefixes: list[list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        beam_search(TableStepper(), [TABLE], SearchConfig(), prefixes)


def test_an_exact_search_of_two_sentences_is_refused() -> None:
    with pytest.raises(ValueError, match="one sentence, not of 2"):
        exact_search(TableStepper(), Request([TABLE, TABLE]), SearchConfig())


def test_fewer_targets_than_sentences_are_refused() -> None:
    with pytest.raises(ValueError, match="targets has 1 for 2 sentences"):
        score_targets(TableStepper(), [TABLE, TABLE], [[2]])


# --- models that diverged --------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, -math.inf])
@pytest.mark.parametrize(
    "search",
    [
        pytest.param(lambda: score_targets(TableStepper(), [TABLE], [[2, 2]]), id="score"),
        pytest.param(lambda: suggest(TableStepper(), [TABLE], [2]), id="suggest"),
        pytest.param(lambda: beam_search(TableStepper(), [TABLE], BEST_TWO), id="beam"),
        pytest.param(lambda: exact_search(TableStepper(), Request([TABLE]), BEST_TWO), id="exact"),
    ],
)
def test_a_model_that_diverges_after_the_first_token_is_refused(
    search: Callable[[], object], value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its log-probabilities are nan or -inf there, as after a training that diverged."""
    half = math.log(0.5)
    first = [-math.inf, half, half, -math.inf, -math.inf]
    monkeypatch.setattr(Table, "log_probs", lambda _, prefix: [value] * 5 if prefix else first)
    with pytest.raises(SearchError, match="gives no token a positive probability"):
        search()
