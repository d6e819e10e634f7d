"""Lines for which no output is possible: the summary says what leaves none."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.report.summary import Summary
from onmt_entmax.search import Constraints, LineConstraints, SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.certain_models import write_model_of


def summary_of(folder: Path, task: SearchTask, **requests: Sequence[object]) -> str:
    """Return the summary of the translation of two lines, `a` and `b`."""
    summary = Summary()
    for answer in Translator.from_folders([folder], task).answers(["a", "b"], **requests):
        summary.add(answer)
    return summary.text()


def test_a_model_without_a_possible_output_is_blamed(tmp_path: Path) -> None:
    """A model trained on `<s> ...`, from before that was refused, writes nothing else."""
    text = summary_of(write_model_of(tmp_path / "model", "<s>"), SearchTask())
    assert text.splitlines()[0] == (
        "2 sentences, 2 without a possible output (the model gives all probability to start and "
        "padding symbols)"
    )


class TestRequestsThatLeaveNoOutput:
    """The model writes the empty output alone."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_model_of(tmp_path / "model", "</s>")

    def test_are_named_of_each_line(self, folder: Path) -> None:
        task = SearchTask(SearchConfig(constraints=Constraints(min_length=2)))
        text = summary_of(folder, task, prefixes=["x", ""])
        assert "1 without a possible output under min_length" in text
        assert "1 without a possible output under prefix and min_length" in text

    def test_are_counted_of_the_lines_that_have_them(self, folder: Path) -> None:
        constraints = [LineConstraints(), LineConstraints((("x",),))]
        text = summary_of(folder, SearchTask(), constraints=constraints)
        assert "2 sentences, 1 without a possible output under constraints" in text
