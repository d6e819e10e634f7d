"""docs/mappings.md: its snippets print what it says, and its algorithms are those of the tests."""

import doctest
from pathlib import Path

import torch

from tests.oracles import entmax_oracle

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mappings.md"


def test_snippets_and_algorithms() -> None:
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    parsed = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(parsed.examples) == text.count("\n>>> ")
    try:
        failed, _ = doctest.DocTestRunner().run(parsed, clear_globs=False)
    finally:
        torch.set_printoptions(profile="default")
    assert not failed
    page = parsed.globs
    for length in (1, 2, 9, 60):
        for spread in (0.0, 0.2, 2.0, 20.0):
            row = (torch.randn(length).double() * spread * 4).round() / 4  # with ties
            found = [(page["sparsemax"](row), 2.0), (page["entmax15"](row), 1.5)]
            found += [(page["by_bisection"](row, alpha), alpha) for alpha in (1.2, 1.5, 2.0, 2.5)]
            for p, alpha in found:
                torch.testing.assert_close(p, entmax_oracle(row, alpha), rtol=0, atol=1e-12)
