"""The snippets of docs/sparsemax.md print what the page says."""

import doctest
from pathlib import Path

import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sparsemax.md"


def test_every_snippet():
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    parsed = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(parsed.examples) > 30
    try:
        failed, _ = doctest.DocTestRunner().run(parsed)
    finally:
        torch.set_printoptions(profile="default")
    assert not failed
