"""Summaries of translations without a possible output: they say what rules out all outputs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.report.summary import Summary
from onmt_entmax.search import Constraints, LineConstraints, SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.certain_models import write_model_of


def summary_of(folder: Path, task: SearchTask, **requests: Sequence[object]) -> str:
    """Translate the lines `a` and `b`, and return the summary."""
    summary = Summary()
    for answer in Translator.from_folders([folder], task).answers(["a", "b"], **requests):
        summary.add(answer)
    return summary.text()


def test_a_model_that_writes_only_special_symbols_is_named_as_the_cause(tmp_path: Path) -> None:
    """Earlier releases trained on targets with `<s>`, which is refused now."""
    text = summary_of(write_model_of(tmp_path / "model", "<s>"), SearchTask())
    assert text.splitlines()[0] == (
        "2 sentences, 2 without a possible output (the model gives all probability to start and "
        "padding symbols)"
    )


class TestRequestsThatNoOutputSatisfies:
    """The only output of the model is the empty one."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_model_of(tmp_path / "model", "</s>")

    def test_are_named_for_each_line(self, folder: Path) -> None:
        """All outputs need two tokens, and that of the first line begins with x."""
        task = SearchTask(SearchConfig(constraints=Constraints(min_length=2)))
        text = summary_of(folder, task, prefixes=["x", ""])
        assert "1 without a possible output under min_length" in text
        assert "1 without a possible output under prefix and min_length" in text

    def test_are_counted_by_line(self, folder: Path) -> None:
        """Only the second line has a constraint."""
        constraints = [LineConstraints(), LineConstraints((("x",),))]
        text = summary_of(folder, SearchTask(), constraints=constraints)
        assert "2 sentences, 1 without a possible output under constraints" in text
