"""Certificates under constraints and penalties, against enumeration."""

import math

import pytest
import torch

from onmt_entmax.search import Constraints, Penalties, SearchConfig, beam_search
from tests.search.tables import EOS, Table, TableStepper


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Constraints, {"min_length": -1}),
        (Constraints, {"block_ngram_repeat": -1}),
        (Penalties, {"length_penalty": "gnmt"}),
        (Penalties, {"coverage_penalty": "sum"}),
        (Penalties, {"alpha": -0.5}),
        (Penalties, {"beta": float("nan")}),
    ],
)
def test_wrong_options_are_refused(kind: type, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        kind(**wrong)


def test_a_coverage_penalty_needs_attention() -> None:
    config = SearchConfig(penalties=Penalties(coverage_penalty="summary", beta=1.0))
    with pytest.raises(ValueError, match="attention"):
        beam_search(TableStepper(), [Table(0, 1.0)], config)


EACH_ONCE = torch.eye(3)  # attention (steps, source positions)


@pytest.mark.parametrize("name", ["wu", "summary"])
def test_coverage_costs_nothing_where_every_position_is_covered_once(name: str) -> None:
    penalties = Penalties(coverage_penalty=name, beta=2.0)
    assert penalties.score(-1.0, 3, EACH_ONCE) == -1.0


def test_a_position_that_is_not_covered_costs_all() -> None:
    penalties = Penalties(coverage_penalty="wu", beta=1.0)
    assert penalties.score(-1.0, 3, EACH_ONCE[:2]) == -math.inf


@pytest.mark.parametrize(
    ("prefix", "repeats"),
    [
        pytest.param((2, 3, 4, 2, 3), {4}, id="it ends as another n-gram begins"),
        pytest.param((2, 3, 4, 2, 5), set(), id="another second token"),
        pytest.param((5, 3, 4, 2, 3), set(), id="another first token"),
        pytest.param((2, 3), set(), id="no n-gram yet"),
    ],
)
def test_all_tokens_of_an_ngram_count(prefix: tuple[int, ...], repeats: set[int]) -> None:
    assert Constraints(block_ngram_repeat=3).forbidden(prefix, EOS) == repeats


@pytest.mark.parametrize("ignored", [2, 3, 4])
def test_any_token_of_an_ngram_may_allow_its_repetition(ignored: int) -> None:
    constraints = Constraints(block_ngram_repeat=3, ignore_when_blocking=frozenset({ignored}))
    assert constraints.forbidden((2, 3, 4, 2, 3), EOS) == set()


def test_a_token_may_be_repeated_alone() -> None:
    constraints = Constraints(block_ngram_repeat=1, ignore_when_blocking=frozenset({2}))
    assert constraints.forbidden((2, 3), EOS) == {3}
