"""`onmt-entmax evaluate` of tables of `predict`, with probabilities and certificates."""

from pathlib import Path

import pytest

from tests.cli.evaluating import evaluated, scores
from tests.cli.tables import write_table


@pytest.fixture
def five_queries(tmp_path: Path) -> tuple[object, ...]:
    """The arguments that evaluate predictions of five queries; the target of each is `p a`.

    Columns of the predictions: source, target, rank, probability, certificate and warnings. Two
    queries have a second output, and one has none.
    """
    gold = write_table(tmp_path / "gold.tsv", *(f"{source}\tp a" for source in range(5)))
    predicted = write_table(
        tmp_path / "predicted.tsv",
        "0\tp a\t1\t0.9\tonly\t",
        "1\tp a\t1\t0.9\toptimal\t",
        "1\tp\t2\t0.1\toptimal\t",
        "2\tp\t1\t0.6\toptimal\tunknown character x",
        "2\tp a\t2\t0.4\toptimal\tunknown character x",
        "3\t\t\t0\tnone\t",
        "4\tp a\t1\t0.8\tonly\t",
    )
    return predicted, "--reference", gold


# --- several outputs of a query ---


def test_the_first_output_of_a_query_counts(
    five_queries: tuple[object, ...], tmp_path: Path
) -> None:
    assert scores(tmp_path, *five_queries)["all"]["accuracy"] == pytest.approx(3 / 5)


def test_several_outputs_with_ranks_are_not_warned_of(
    five_queries: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluated(*five_queries) == 0
    assert "several predictions" not in capsys.readouterr().err


# --- certificates ---


def test_each_certificate_has_its_share_and_accuracy(
    five_queries: tuple[object, ...], tmp_path: Path
) -> None:
    assert scores(tmp_path, *five_queries)["all"]["certificates"] == {
        "only": {"share": 2 / 5, "accuracy": 1.0},
        "optimal": {"share": 2 / 5, "accuracy": 1 / 2},
        "none": {"share": 1 / 5, "accuracy": 0.0},
    }


@pytest.fixture
def printed_rows(
    five_queries: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> list[list[str]]:
    """The cells of each line that is printed."""
    assert evaluated(*five_queries) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


# Share and accuracy, in percent, of only, exhaustive (of which there is none), optimal and none.
PRINTED_SHARES = "40.00 100.00 0.00 - 40.00 50.00 20.00 0.00".split()


def test_shares_and_accuracies_are_printed_for_all_queries(printed_rows: list[list[str]]) -> None:
    assert ["all", *PRINTED_SHARES] in printed_rows


def test_shares_of_a_table_without_a_language_are_printed_once(
    printed_rows: list[list[str]],
) -> None:
    """There is no row for the language, which would have the name of the gold file."""
    assert [row[0] for row in printed_rows if row[1:] == PRINTED_SHARES] == ["all"]


def test_certificates_are_read_below_a_heading(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "word\tpronunciation", "a\tp a", "b\tp a")
    heading = "word\tpronunciation\trank\tprobability\tcertificate\twarnings"
    rows = ("a\tp a\t1\t1\tonly\t", "b\tp\t1\t1\tonly\t")
    predicted = write_table(tmp_path / "predicted.tsv", heading, *rows)
    figures = scores(tmp_path, predicted, "--reference", gold)
    assert figures["all"]["certificates"] == {"only": {"share": 1.0, "accuracy": 0.5}}


# --- probabilities ---


def test_probabilities_of_first_outputs_are_compared_with_accuracies(
    five_queries: tuple[object, ...], tmp_path: Path
) -> None:
    """0.9 twice and right, 0.8 and right, 0.6 and wrong, 0 and wrong."""
    assert scores(tmp_path, *five_queries)["probabilities"] == {
        "predictions": 5,
        "mean": pytest.approx((0.9 + 0.9 + 0.8 + 0.6 + 0) / 5),
        "calibration_error": pytest.approx((0.1 + 0.1 + 0.2 + 0.6 + 0) / 5),
    }


# --- empty outputs ---


class TestATableOfEmptyOutputs:
    """Its certificates show that the targets were predicted, and are not those of a test file."""

    @pytest.fixture
    def warnings(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        gold = write_table(tmp_path / "gold.tsv", "a\tp", "b\tp")
        predicted = write_table(tmp_path / "p.tsv", "a\t\t\t\tnone\t", "b\t\t\t\tnone\t")
        assert evaluated(predicted, "--reference", gold) == 0
        return capsys.readouterr().err

    def test_is_warned_of(self, warnings: str) -> None:
        assert "empty predictions: 2 of 2" in warnings

    def test_is_taken_for_predictions(self, warnings: str) -> None:
        assert "are they predictions?" not in warnings
