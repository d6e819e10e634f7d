"""`onmt-entmax evaluate` of files of tokens: figures by hand, and what is refused."""

from pathlib import Path

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import Evaluation, evaluation_of, write_files
from tests.in_process import refusal

# --- scores ---


@pytest.fixture
def two_languages(tmp_path: Path) -> Evaluation:
    """Three English words, of which one is right, one has a character too many and one has no
    prediction; a German one that is right.
    """
    arguments = write_files(
        tmp_path,
        source=["lang=english +V a", "lang=english +V b", "lang=english +V c", "lang=german +V a"],
        reference=["a b", "a b c", "a", "b"],
        predictions=["a b x", "", "a", "b"],
    )
    return evaluation_of(tmp_path, arguments)


def test_scores_are_those_of_each_language(two_languages: Evaluation) -> None:
    assert two_languages.content["languages"]["english"] == {
        "words": 3,
        "accuracy": pytest.approx(1 / 3),
        "edit_distance": pytest.approx((1 + 3) / 3),
    }


def test_every_language_counts_the_same_in_the_average(two_languages: Evaluation) -> None:
    assert two_languages.content["average"]["accuracy"] == pytest.approx((1 / 3 + 1) / 2)


def test_the_average_is_printed_last(two_languages: Evaluation) -> None:
    *_, last = two_languages.printed.splitlines()
    name, words, accuracy, _edit_distance = last.split()
    assert (name, words, accuracy) == ("average", "4", "66.67")


def test_tokens_are_compared_not_words(tmp_path: Path) -> None:
    """`ts a` is another output than `t s a`, though it spells the same word."""
    arguments = write_files(
        tmp_path,
        source=["lang=x t s a"] * 2,
        reference=["t s a"] * 2,
        predictions=["ts a", "t s a"],
        against=["t s a", "ts a"],
    )
    evaluation = evaluation_of(tmp_path, arguments)
    scores = evaluation.content["languages"]["x"]
    assert (scores["accuracy"], scores["edit_distance"]) == (0.5, 1.0)
    assert evaluation.row("x") == evaluation.row("all") == ["1", "1", "1.0000"]


# --- lists of predictions ---


@pytest.fixture
def list_arguments(tmp_path: Path) -> list[str]:
    """Three words with lists of three predictions, which blank lines fill up."""
    return write_files(
        tmp_path,
        source=["lang=x +V a", "lang=x +V b", "lang=y +V c"],
        reference=["a a", "b", "c"],
        predictions=["a", "a a", "", "x y z", "", "", "c", "d", ""],
    )


def test_lists_have_scores_of_the_first_and_of_the_nearest(
    list_arguments: list[str], tmp_path: Path
) -> None:
    evaluation = evaluation_of(tmp_path, [*list_arguments, "--nbest", "3"])
    # Words; accuracy in percent and edit distance, of the first and of the nearest prediction.
    assert evaluation.row("x") == ["2", "0.00", "2.000", "50.00", "1.500"]
    assert evaluation.row("average") == ["3", "50.00", "1.000", "75.00", "0.750"]
    assert evaluation.content["best of 3"]["languages"]["x"]["accuracy"] == 0.5


def test_lists_of_another_length_are_refused(list_arguments: list[str]) -> None:
    message = refusal(evaluate.main, [*list_arguments, "--nbest", "2"])
    assert "predictions: 9 lines, but" in message


@pytest.fixture
def several_forms(tmp_path: Path) -> Evaluation:
    """Two rows have the same source: either of their references is right."""
    arguments = write_files(
        tmp_path,
        source=["lang=x +V a", "lang=x +V a", "lang=x +V b"],
        reference=["a d", "a t", "b d"],
        predictions=["a t", "x y", "a t", "a t", "b t", "b d"],
        against=["a t", "", "a x", "", "b d", ""],
    )
    return evaluation_of(tmp_path, [*arguments, "--nbest", "2"])


def test_words_with_several_correct_forms_are_counted(several_forms: Evaluation) -> None:
    assert "\nwords with several correct forms: 2 of 3\n" in several_forms.printed


def test_every_correct_form_of_a_source_is_right(several_forms: Evaluation) -> None:
    average = several_forms.content["average"]
    assert average == {"words": 3, "accuracy": 2 / 3, "edit_distance": 1 / 3}
    assert several_forms.content["best of 2"]["average"]["accuracy"] == 1


def test_every_correct_form_counts_in_comparisons(several_forms: Evaluation) -> None:
    assert several_forms.content["against"]["all"] == {"won": 1, "lost": 1, "p": 1.0}


# --- errors ---


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
def test_wrong_files_are_refused_and_nothing_is_written(
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
