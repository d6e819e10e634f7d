"""docs/mappings.md: its snippets print what it says, and its algorithms are those of the tests."""

import doctest
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.oracles import entmax_oracle

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mappings.md"


@pytest.fixture(scope="module")
def snippets() -> doctest.DocTest:
    # doctest would read a closing fence as output.
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    return doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)


@pytest.fixture(scope="module")
def results(snippets: doctest.DocTest) -> Iterator[doctest.TestResults]:
    """Run the snippets, which leave their functions in `snippets.globs`."""
    yield doctest.DocTestRunner().run(snippets, clear_globs=False)
    torch.set_printoptions(profile="default")  # a snippet changes them


@pytest.fixture
def function(
    snippets: doctest.DocTest, results: doctest.TestResults, name: str
) -> Callable[..., Tensor]:
    return snippets.globs[name]


def test_snippets_print_what_the_page_says(results: doctest.TestResults) -> None:
    assert results.failed == 0


def test_every_snippet_is_run(results: doctest.TestResults) -> None:
    assert results.attempted == PAGE.read_text(encoding="utf-8").count("\n>>> ")


def scores_with_ties(length: int, spread: float) -> Tensor:
    return (torch.randn(length).double() * spread * 4).round() / 4


@pytest.mark.parametrize("length", [1, 2, 9, 60])
@pytest.mark.parametrize("spread", [0.0, 0.2, 2.0, 20.0])
class TestAlgorithms:
    """Those of the page give what the definition gives."""

    @pytest.mark.parametrize(("name", "alpha"), [("sparsemax", 2.0), ("entmax15", 1.5)])
    def test_of_one_alpha(
        self, function: Callable[[Tensor], Tensor], alpha: float, length: int, spread: float
    ) -> None:
        row = scores_with_ties(length, spread)
        torch.testing.assert_close(function(row), entmax_oracle(row, alpha), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("name", ["by_bisection"])
    @pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.5])
    def test_of_any_alpha(
        self, function: Callable[[Tensor, float], Tensor], alpha: float, length: int, spread: float
    ) -> None:
        row = scores_with_ties(length, spread)
        expected = entmax_oracle(row, alpha)
        torch.testing.assert_close(function(row, alpha), expected, rtol=0, atol=1e-12)
