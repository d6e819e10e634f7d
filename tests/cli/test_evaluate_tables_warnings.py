"""`onmt-entmax evaluate` of predicted tables: what gives a warning."""

from pathlib import Path

import pytest

from tests.cli.evaluating import GOLD, Evaluation, run_evaluate
from tests.cli.tables import write_table


class TestGoldQueriesWithoutAPrediction:
    """Of three gold queries, only `cat` has a prediction."""

    @pytest.fixture
    def evaluation(self, tmp_path: Path) -> Evaluation:
        gold = write_table(tmp_path / "gold.tsv", *GOLD)
        predicted = write_table(tmp_path / "p.tsv", "cat\tk æ t")
        return run_evaluate(tmp_path, predicted, "--reference", gold)

    def test_are_counted(self, evaluation: Evaluation) -> None:
        assert evaluation.content["missing"] == 2

    def test_are_wrong(self, evaluation: Evaluation) -> None:
        assert evaluation.content["all"]["accuracy"] == pytest.approx(1 / 3)

    def test_have_an_error_for_each_symbol(self, evaluation: Evaluation) -> None:
        error_rate = evaluation.content["all"]["error_rate"]
        assert error_rate == pytest.approx((0 + 3 + 3) / (3 + 3 + 3))

    def test_give_a_warning(self, evaluation: Evaluation) -> None:
        assert "gold queries without a prediction: 2 of 3" in evaluation.errors


def test_languages_without_any_prediction_are_named(tmp_path: Path) -> None:
    gold = [write_table(tmp_path / f"{name}.tsv", "a\tb", "c\td") for name in ("xx", "yy", "zz")]
    (tmp_path / "out").mkdir()
    predicted = write_table(tmp_path / "out/yy.tsv", "a\tb")
    evaluation = run_evaluate(tmp_path, predicted, "--reference", *gold)
    warning = "gold queries without a prediction: 5 of 6 (all of xx, zz); they count as wrong"
    assert warning in evaluation.errors


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        pytest.param(("cat\t", "gnu\tn"), 1, id="an empty target"),
        pytest.param(("cat\t\t\t0\tnone\t", "gnu\t\t\t0\tnone\t"), 2, id="no output at all"),
    ],
)
def test_empty_predictions_give_a_warning(
    tmp_path: Path, rows: tuple[str, ...], count: int
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", *rows)
    evaluation = run_evaluate(tmp_path, predicted, "--reference", gold)
    assert f"warning: empty predictions: {count} of 2" in evaluation.errors


class TestSeveralPredictionsOfAQuery:
    """`cat` has two different ones, and `read` has the same one twice."""

    @pytest.fixture
    def evaluation(self, tmp_path: Path) -> Evaluation:
        gold = write_table(tmp_path / "gold.tsv", *GOLD)
        rows = ("cat\tk æ t", "cat\tk a t", "read\tɹ ɛ d", "read\tɹ ɛ d", "gnu\tn uː")
        predicted = write_table(tmp_path / "p.tsv", *rows)
        return run_evaluate(tmp_path, predicted, "--reference", gold)

    def test_count_by_the_first(self, evaluation: Evaluation) -> None:
        assert evaluation.content["all"]["accuracy"] == pytest.approx(2 / 3)

    def test_give_a_warning_if_they_differ(self, evaluation: Evaluation) -> None:
        assert "several predictions, of which the first counts: 1" in evaluation.errors


def test_a_table_without_any_target_gives_a_warning(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", "cat\t", "read\t", "gnu\t")
    evaluation = run_evaluate(tmp_path, predicted, "--reference", gold)
    assert evaluation.content["all"]["accuracy"] == 0
    assert "p.tsv: all targets are empty: are they predictions?" in evaluation.errors


@pytest.mark.parametrize(
    ("predicted", "number"),
    [
        pytest.param("Haus\tHa\u0308user", 1, id="NFD"),
        pytest.param("Haus\tHäuser ", 1, id="a space at the end"),
        pytest.param("Haus\tHauser", 0, id="another letter"),
    ],
)
def test_predictions_that_differ_only_in_their_writing_are_counted(
    tmp_path: Path, predicted: str, number: int
) -> None:
    gold = write_table(tmp_path / "gold.tsv", "Haus\tHäuser", "Maus\tMäuse")
    table = write_table(tmp_path / "p.tsv", predicted, "Maus\tMäuse")
    evaluation = run_evaluate(tmp_path, table, "--reference", gold)
    warning = "only in Unicode's normal form or in spaces around it: 1\n"
    assert evaluation.errors.count(warning) == number


def test_a_gold_row_that_may_be_a_heading_gives_a_warning(tmp_path: Path) -> None:
    """Nothing shows that it is one: the first row of a predicted table is equal if it is right."""
    gold = write_table(tmp_path / "gold.tsv", "Wort\tIPA", "Haus\thaʊs", "Maus\tmaʊs")
    evaluation = run_evaluate(tmp_path, gold, "--reference", gold)
    warning = f"warning: {gold}:1: 'Wort', 'IPA' may be a heading; it counts as a query\n"
    assert warning in evaluation.errors


def test_other_gold_rows_give_no_warning_of_a_heading(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    evaluation = run_evaluate(tmp_path, gold, "--reference", gold)
    assert "may be a heading" not in evaluation.errors
