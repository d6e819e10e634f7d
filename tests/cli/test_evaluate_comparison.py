"""`onmt-entmax evaluate --against`: two sets of predicted tokens, compared by McNemar's test."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.evaluating import run_evaluate, write_files


@pytest.fixture
def comparison(tmp_path: Path) -> dict[str, Any]:
    """The comparison of ten words in the languages x and y, five of each.

    | words | these predictions | the others |
    |---|---|---|
    | 2 of x | right | right |
    | 3 of x, 3 of y | right | wrong |
    | 1 of y | wrong | wrong |
    | 1 of y | wrong | right |
    """
    arguments = write_files(
        tmp_path,
        source=["lang=x +V a"] * 5 + ["lang=y +V a"] * 5,
        reference=["a"] * 10,
        predictions=["a"] * 8 + ["b"] * 2,
        against=["a"] * 2 + ["b"] * 7 + ["a"],
    )
    against: dict[str, Any] = run_evaluate(tmp_path, *arguments).content["against"]
    return against


def test_words_that_one_side_alone_has_right_are_counted(comparison: dict[str, Any]) -> None:
    assert (comparison["all"]["won"], comparison["all"]["lost"]) == (6, 1)


def test_words_of_a_language_are_counted_alone(comparison: dict[str, Any]) -> None:
    assert (comparison["x"]["won"], comparison["x"]["lost"]) == (3, 0)


def test_p_is_that_of_mcnemars_exact_test(comparison: dict[str, Any]) -> None:
    """Seven words are right on one side alone, as if by seven throws of a coin.

    Of 2 ** 7 outcomes, 1 + 7 have at most one word on the second side, and as many on the first.
    """
    assert comparison["all"]["p"] == 2 * (1 + 7) / 2**7


def test_p_of_a_language_is_that_of_its_words(comparison: dict[str, Any]) -> None:
    assert comparison["x"]["p"] == 2 * 1 / 2**3
