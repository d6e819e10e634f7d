"""Certificates under constraints and penalties, against enumeration."""

import math
from collections.abc import Sequence

import pytest
import torch

from onmt_entmax.search import Constraints, Penalties, SearchConfig, beam_search
from tests.search.enumeration import EnumeratedSupport
from tests.search.tables import EOS, Table, TableStepper

CONSTRAINTS = {
    "minimum": Constraints(min_length=2),
    "bigrams": Constraints(block_ngram_repeat=2),
    "words": Constraints(block_ngram_repeat=1, ignore_when_blocking=frozenset({2})),
    "banned": Constraints(banned=frozenset({3})),
    "all": Constraints(1, 2, frozenset({4}), frozenset({2})),
}


def is_allowed(
    tokens: tuple[int, ...], wish: Constraints, forced: Sequence[int], complete: bool
) -> bool:
    """Tell whether the constraints allow a sequence, or a prefix of one."""
    known = min(len(forced), len(tokens))
    if tokens[:known] != tuple(forced[:known]) or (complete and len(tokens) < len(forced)):
        return False
    if complete and len(tokens) < max(wish.min_length, len(forced)) and len(tokens) >= len(forced):
        return False
    if wish.banned & set(tokens[len(forced) :]):
        return False
    n = wish.block_ngram_repeat
    grams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)] if n else []
    return not any(
        gram in grams[:i] and not wish.ignore_when_blocking & set(gram)
        for i, gram in enumerate(grams)
        if i + n > len(forced)
    )


def allowed_part(
    support: EnumeratedSupport, wish: Constraints, forced: Sequence[int] = ()
) -> EnumeratedSupport:
    """Return the part of the support that the constraints allow."""
    return EnumeratedSupport(
        {s: p for s, p in support.strings.items() if is_allowed(s, wish, forced, True)},
        {s: p for s, p in support.prefixes.items() if is_allowed(s, wish, forced, False)},
        {(): 0.0},  # what was excluded is checked by its mass
    )


def score(penalties: Penalties, tokens: tuple[int, ...], log_prob: float) -> float:
    """Return OpenNMT-py's score; attention is that of `TableStepper`."""
    divisor = {
        "none": 1.0,
        "wu": ((5 + len(tokens) + 2) / 6) ** penalties.alpha,
        "avg": len(tokens) + 2.0,
    }[penalties.length_penalty]
    prefixes = [tokens[:i] for i in range(len(tokens) + 1)]
    covered = sum(sum(prefix) + 10.0 * len(prefix) for prefix in prefixes)
    penalty = {"none": 0.0, "summary": max(covered, 1.0) - 1.0}
    penalty["wu"] = -math.log(min(covered, 1.0)) if covered else math.inf
    return log_prob / divisor - penalties.beta * penalty[penalties.coverage_penalty]


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


def test_coverage_is_zero_where_everything_is_covered_once() -> None:
    attention = torch.eye(3)
    for name in ("wu", "summary"):
        penalties = Penalties(coverage_penalty=name, beta=2.0)  # type: ignore[arg-type]
        assert penalties.score(-1.0, 3, attention) == -1.0
    penalties = Penalties(coverage_penalty="wu", beta=1.0)
    assert penalties.score(-1.0, 3, attention[:2]) == -math.inf


@pytest.mark.parametrize(
    ("prefix", "repeats"),
    [((2, 3, 4, 2, 3), {4}), ((2, 3, 4, 2, 5), set()), ((5, 3, 4, 2, 3), set()), ((2, 3), set())],
)
def test_all_tokens_of_an_ngram_count(prefix: tuple[int, ...], repeats: set[int]) -> None:
    assert Constraints(block_ngram_repeat=3).forbidden(prefix, EOS) == repeats
