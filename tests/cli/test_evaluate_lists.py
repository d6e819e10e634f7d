"""`onmt-entmax evaluate --nbest N`: lists of predictions, and words with several correct forms."""

from pathlib import Path

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import Evaluation, run_evaluate, write_files
from tests.in_process import refusal

# --- lists ---


@pytest.fixture
def list_arguments(tmp_path: Path) -> list[str]:
    """Three words with lists of three predictions, which blank lines fill up."""
    return write_files(
        tmp_path,
        source=["lang=x +V a", "lang=x +V b", "lang=y +V c"],
        reference=["a a", "b", "c"],
        predictions=["a", "a a", "", "x y z", "", "", "c", "d", ""],
    )


def test_scores_of_the_first_and_of_the_nearest_prediction_are_printed(
    list_arguments: list[str], tmp_path: Path
) -> None:
    """The last two columns are of the prediction of each list that is nearest to the reference."""
    evaluation = run_evaluate(tmp_path, *list_arguments, "--nbest", "3")
    assert evaluation.scores == [
        ["language", "words", "accuracy", "edit distance", "best of 3", "edit distance"],
        ["x", "2", "0.00", "2.000", "50.00", "1.500"],
        ["y", "1", "100.00", "0.000", "100.00", "0.000"],
        ["average", "3", "50.00", "1.000", "75.00", "0.750"],
    ]


def test_scores_of_the_nearest_are_written_as_json(
    list_arguments: list[str], tmp_path: Path
) -> None:
    content = run_evaluate(tmp_path, *list_arguments, "--nbest", "3").content
    assert content["best of 3"]["languages"]["x"]["accuracy"] == 0.5


def test_lists_of_another_length_are_refused(list_arguments: list[str]) -> None:
    message = refusal(evaluate.main, [*list_arguments, "--nbest", "2"])
    assert "predictions: 9 lines, but" in message


# --- words with several correct forms ---


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
    return run_evaluate(tmp_path, *arguments, "--nbest", "2")


def test_words_with_several_correct_forms_are_counted(several_forms: Evaluation) -> None:
    assert "\nwords with several correct forms: 2 of 3\n" in several_forms.printed


def test_every_correct_form_of_a_source_is_right(several_forms: Evaluation) -> None:
    """The first predictions are `a t` twice, and `b t` instead of `b d`."""
    average = several_forms.content["average"]
    assert average == {"words": 3, "accuracy": 2 / 3, "edit_distance": 1 / 3}


def test_every_correct_form_counts_in_lists(several_forms: Evaluation) -> None:
    assert several_forms.content["best of 2"]["average"]["accuracy"] == 1


def test_every_correct_form_counts_in_comparisons(several_forms: Evaluation) -> None:
    assert several_forms.content["against"]["all"] == {"won": 1, "lost": 1, "p": 1.0}
