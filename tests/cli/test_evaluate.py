"""`onmt-entmax evaluate` of files of tokens: figures by hand, and files that are refused."""

from pathlib import Path

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import Evaluation, run_evaluate, write_files
from tests.in_process import refusal

# --- scores ---


@pytest.fixture
def two_languages(tmp_path: Path) -> Evaluation:
    """A German word, which is right, and three English ones.

    Of these, one is right, one has a character too many, and one has no prediction.
    """
    arguments = write_files(
        tmp_path,
        source=["lang=english +V a", "lang=english +V b", "lang=english +V c", "lang=german +V a"],
        reference=["a b", "a b c", "a", "b"],
        predictions=["a b x", "", "a", "b"],
    )
    return run_evaluate(tmp_path, *arguments)


def test_scores_are_those_of_each_language(two_languages: Evaluation) -> None:
    assert two_languages.content["languages"]["english"] == {
        "words": 3,
        "accuracy": pytest.approx(1 / 3),
        "edit_distance": pytest.approx((1 + 3) / 3),
    }


def test_every_language_counts_the_same_in_the_average(two_languages: Evaluation) -> None:
    assert two_languages.content["average"]["accuracy"] == pytest.approx((1 / 3 + 1) / 2)


def test_scores_are_printed_as_a_table(two_languages: Evaluation) -> None:
    assert two_languages.scores == [
        ["language", "words", "accuracy", "edit distance"],
        ["english", "3", "33.33", "1.333"],
        ["german", "1", "100.00", "0.000"],
        ["average", "4", "66.67", "0.667"],
    ]


class TestTokensThatSpellTheSameWord:
    """`ts a` and `t s a` are two outputs: each side has one of two words right."""

    @pytest.fixture
    def evaluation(self, tmp_path: Path) -> Evaluation:
        arguments = write_files(
            tmp_path,
            source=["lang=x t s a"] * 2,
            reference=["t s a"] * 2,
            predictions=["ts a", "t s a"],
            against=["t s a", "ts a"],
        )
        return run_evaluate(tmp_path, *arguments)

    def test_are_not_equally_right(self, evaluation: Evaluation) -> None:
        assert evaluation.content["languages"]["x"]["accuracy"] == 0.5

    def test_are_two_edits_apart(self, evaluation: Evaluation) -> None:
        assert evaluation.content["languages"]["x"]["edit_distance"] == (2 + 0) / 2

    @pytest.mark.parametrize("name", ["x", "all"])
    def test_are_not_equal_in_comparisons(self, evaluation: Evaluation, name: str) -> None:
        won, lost, p_value = "1", "1", "1.0000"
        assert [name, won, lost, p_value] in evaluation.comparisons


# --- files that do not fit ---


@pytest.mark.parametrize(
    ("source", "predictions", "message"),
    [
        pytest.param(["lang=x +V a"], ["a", "b"], "2 lines, but", id="too many"),
        pytest.param(
            ["lang=x +V a", "d r a w"],
            ["a", "b"],
            "source:2: expected a language first",
            id="no language",
        ),
        pytest.param(
            ["lang=x +V a"],
            ["x\ta\tV\t1\ta\t1\tonly\t"],
            "predictions:1: expected tokens",
            id="table",
        ),
        pytest.param(["lang=x +V a"], ['{"id": 0}'], "predictions:1: expected tokens", id="report"),
    ],
)
def test_files_that_do_not_fit_are_refused_and_nothing_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    source: list[str],
    predictions: list[str],
    message: str,
) -> None:
    reference = ["a"] * len(source)
    arguments = write_files(tmp_path, source=source, reference=reference, predictions=predictions)
    report = tmp_path / "report.json"
    assert message in refusal(evaluate.main, [*arguments, "--json", report])
    assert capsys.readouterr().out == ""
    assert not report.exists()
