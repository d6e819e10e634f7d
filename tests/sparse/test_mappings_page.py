"""docs/mappings.md: its snippets print what it says, and its algorithms are those of the tests."""

import doctest
from collections.abc import Iterator
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


def test_snippets_print_what_the_page_says(results: doctest.TestResults) -> None:
    assert results.failed == 0


def test_every_snippet_is_run(results: doctest.TestResults) -> None:
    assert results.attempted == PAGE.read_text(encoding="utf-8").count("\n>>> ")


def scores_with_ties(length: int, spread: float) -> Tensor:
    return (torch.randn(length).double() * spread * 4).round() / 4


# Scores of up to about 100 in float64, whose rounding is 1e-14, and sums over up to 60 of them.
TOLERANCE = 1e-12
lengths = pytest.mark.parametrize("length", [1, 2, 9, 60])
spreads = pytest.mark.parametrize("spread", [0.0, 0.2, 2.0, 20.0])


@lengths
@spreads
@pytest.mark.parametrize(("name", "alpha"), [("sparsemax", 2.0), ("entmax15", 1.5)])
@pytest.mark.usefixtures("results")
def test_algorithms_of_one_alpha_equal_the_definition(
    snippets: doctest.DocTest, name: str, alpha: float, length: int, spread: float
) -> None:
    row = scores_with_ties(length, spread)
    p = snippets.globs[name](row)
    torch.testing.assert_close(p, entmax_oracle(row, alpha), rtol=0, atol=TOLERANCE)


@lengths
@spreads
@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.5])
@pytest.mark.usefixtures("results")
def test_bisection_equals_the_definition(
    snippets: doctest.DocTest, alpha: float, length: int, spread: float
) -> None:
    row = scores_with_ties(length, spread)
    p = snippets.globs["by_bisection"](row, alpha)
    torch.testing.assert_close(p, entmax_oracle(row, alpha), rtol=0, atol=TOLERANCE)
