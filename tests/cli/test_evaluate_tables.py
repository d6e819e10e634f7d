"""`onmt-entmax evaluate` of predicted tables: figures by hand, certificates and languages."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.evaluating import GOLD, evaluated, scores
from tests.cli.tables import write_table

# For `GOLD`: cat and the second of read's two targets are right; gnu should be n j uː.
PREDICTED = ("gnu\tg n uː", "cat\tk æ t", "read\tɹ ɛ d")


class TestSeveralGoldTargets:
    """`read` has two; `read` and `cat` are right, and `gnu` is not."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        gold = write_table(tmp_path / "gold.tsv", *GOLD)
        predicted = write_table(tmp_path / "p.tsv", *PREDICTED)
        return predicted, "--reference", gold

    def test_are_one_query(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["all"]["queries"] == 3

    def test_are_all_right(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["average"]["accuracy"] == pytest.approx(2 / 3)

    def test_have_the_error_rate_of_the_nearest(
        self, arguments: tuple[object, ...], tmp_path: Path
    ) -> None:
        """`g n uː` for `n j uː`: two edits of nine phones."""
        assert scores(tmp_path, *arguments)["average"]["error_rate"] == pytest.approx(2 / 9)

    def test_are_counted(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert evaluated(*arguments) == 0
        assert "queries with several gold targets: 1 of 3" in capsys.readouterr().out


def test_a_table_of_figures_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", *PREDICTED)
    assert evaluated(predicted, "--reference", gold) == 0
    printed = capsys.readouterr().out
    assert "target: symbols between ' ' (guessed" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["language", "queries", "accuracy", "WER", "PER"] in rows
    assert ["average", "3", "66.67", "33.33", "22.22"] in rows


def test_a_divided_symbol_is_another_target(tmp_path: Path) -> None:
    """`ts a` and `t s a` are different strings, and one is two edits from the other."""
    gold = write_table(tmp_path / "gold.tsv", "x\tt s a", "y\tb")
    predicted = write_table(tmp_path / "p.tsv", "x\tts a", "y\tb")
    figures = scores(tmp_path, predicted, "--reference", gold, "--separator", "target= ")
    assert figures["all"]["accuracy"] == 0.5
    assert figures["all"]["error_rate"] == pytest.approx(2 / 4)


def test_nothing_is_normalised(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "x\t\u00e4", "y\ta")
    predicted = write_table(tmp_path / "p.tsv", "x\ta\u0308", "y\ta ")
    figures = scores(tmp_path, predicted, "--reference", gold)
    assert figures["all"]["accuracy"] == 0
    assert figures["unit"] == "characters"


class TestFilesOfSeveralLanguages:
    """They are paired by language, in any order; a code pairs with a name."""

    @pytest.fixture
    def figures(self, tmp_path: Path) -> dict[str, Any]:
        for folder in ("gold", "out"):
            (tmp_path / folder).mkdir()
        gold = [
            write_table(tmp_path / "gold/german.tst", "a\tV;PST\taa", "b\tV;PST\tbb"),
            write_table(tmp_path / "gold/fra.tst", "a\tV;PST\tcc"),
        ]
        predicted = [
            write_table(tmp_path / "out/fra.covered.tst", "a\tV;PST\tcc"),
            write_table(tmp_path / "out/deu.covered.tst", "b\tV;PST\tb", "a\tV;PST\taa"),
        ]
        columns = ("--columns", "source,tags,target")
        return scores(tmp_path, *predicted, "--reference", *gold, *columns)

    def test_have_figures_of_their_own(self, figures: dict[str, Any]) -> None:
        languages = figures["languages"]
        accuracies = {name: languages[name]["accuracy"] for name in languages}
        assert accuracies == {"german": 0.5, "fra": 1.0}

    def test_count_the_same_in_the_average(self, figures: dict[str, Any]) -> None:
        assert figures["average"]["accuracy"] == 0.75
        german, french = 1 / 4, 0  # one edit of four letters, and none
        assert figures["average"]["error_rate"] == pytest.approx((german + french) / 2)

    def test_count_by_their_rows_in_all(self, figures: dict[str, Any]) -> None:
        assert figures["all"]["accuracy"] == pytest.approx(2 / 3)


class TestCertificates:
    """Predictions of five queries, some of which have several outputs; the first counts."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        gold = write_table(tmp_path / "gold.tsv", *(f"{n}\tp a" for n in range(5)))
        rows = [
            "0\tp a\t1\t0.9\tonly\t",
            "1\tp a\t1\t0.9\toptimal\t",
            "1\tp\t2\t0.1\toptimal\t",
            "2\tp\t1\t0.6\toptimal\tunknown character x",
            "2\tp a\t2\t0.4\toptimal\tunknown character x",
            "3\t\t\t0\tnone\t",
            "4\tp a\t1\t0.8\tonly\t",
        ]
        return write_table(tmp_path / "p.tsv", *rows), "--reference", gold

    def test_have_their_share_and_accuracy(
        self, arguments: tuple[object, ...], tmp_path: Path
    ) -> None:
        assert scores(tmp_path, *arguments)["all"]["certificates"] == {
            "only": {"share": 0.4, "accuracy": 1.0},
            "optimal": {"share": 0.4, "accuracy": 0.5},
            "none": {"share": 0.2, "accuracy": 0.0},
        }

    def test_probabilities_of_first_outputs_are_compared(
        self, arguments: tuple[object, ...], tmp_path: Path
    ) -> None:
        """0.9 twice and right, 0.8 and right, 0.6 and wrong, 0 and wrong."""
        figures = scores(tmp_path, *arguments)["probabilities"]
        assert figures == {
            "predictions": 5,
            "mean": pytest.approx(3.2 / 5),
            "calibration_error": pytest.approx((2 * 0.1 + 0.2 + 0.6) / 5),
        }

    def test_first_outputs_count(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["all"]["accuracy"] == pytest.approx(3 / 5)

    def test_several_outputs_of_a_query_are_not_warned_of(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert evaluated(*arguments) == 0
        assert "several predictions" not in capsys.readouterr().err

    def test_are_printed_for_all_rows_and_for_no_language(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The tables name no language; `gold` is the name of a file."""
        assert evaluated(*arguments) == 0
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        shares = "40.00 100.00 0.00 - 40.00 50.00 20.00 0.00".split()
        assert ["all", *shares] in rows
        assert ["gold", *shares] not in rows


def test_details_below_a_heading_are_found(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "word\tpronunciation", "a\tp a", "b\tp a")
    heading = "word\tpronunciation\trank\tprobability\tcertificate\twarnings"
    predicted = write_table(
        tmp_path / "p.tsv", heading, "a\tp a\t1\t1\tonly\t", "b\tp\t1\t1\tonly\t"
    )
    figures = scores(tmp_path, predicted, "--reference", gold)
    assert figures["all"]["certificates"] == {"only": {"share": 1.0, "accuracy": 0.5}}


def test_a_table_with_details_may_have_empty_outputs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", "a\tp", "b\tp")
    predicted = write_table(tmp_path / "p.tsv", "a\t\t\t\tnone\t", "b\t\t\t\tnone\t")
    assert evaluated(predicted, "--reference", gold) == 0
    warnings = capsys.readouterr().err
    assert "empty predictions: 2 of 2" in warnings
    assert "are they predictions?" not in warnings


def test_a_heading_names_other_columns_than_those_of_the_gold_table(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "xx\tcat\tk a t", "yy\tcat\tk")
    predicted = write_table(tmp_path / "p.tsv", "pronunciation\tword\tlanguage", "k\tcat\tyy")
    columns = ("--columns", "language,source,target")
    figures = scores(tmp_path, predicted, "--reference", gold, *columns)
    assert figures["languages"]["yy"]["accuracy"] == 1
