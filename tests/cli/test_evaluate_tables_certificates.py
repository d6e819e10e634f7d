"""`onmt-entmax evaluate` of tables of `predict`, with probabilities and certificates."""

from pathlib import Path

import pytest

from tests.cli.evaluating import Evaluation, run_evaluate
from tests.cli.tables import write_table


@pytest.fixture
def five_queries(tmp_path: Path) -> Evaluation:
    """Predictions of five queries; the target of each is `p a`.

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
    return run_evaluate(tmp_path, predicted, "--reference", gold)


# --- several outputs of a query ---


def test_the_first_output_of_a_query_counts(five_queries: Evaluation) -> None:
    assert five_queries.content["all"]["accuracy"] == pytest.approx(3 / 5)


def test_only_the_empty_output_gives_a_warning(five_queries: Evaluation) -> None:
    """Several outputs of a query give none, since they have ranks."""
    assert five_queries.errors == "warning: empty predictions: 1 of 5\n"


# --- certificates ---


def test_each_certificate_has_its_share_and_accuracy(five_queries: Evaluation) -> None:
    assert five_queries.content["all"]["certificates"] == {
        "only": {"share": 2 / 5, "accuracy": 1.0},
        "optimal": {"share": 2 / 5, "accuracy": 1 / 2},
        "none": {"share": 1 / 5, "accuracy": 0.0},
    }


def test_share_and_accuracy_of_each_certificate_are_printed_in_percent(
    five_queries: Evaluation,
) -> None:
    """The table has one row, `all`: a language would be named after the gold file."""
    *_, certificates, _probabilities = five_queries.printed.split("\n\n")
    _heading, row = certificates.splitlines()
    name, *numbers = row.split()
    shares, accuracies = numbers[::2], numbers[1::2]
    levels = ("only", "exhaustive", "optimal", "none")
    assert name == "all"
    assert dict(zip(levels, zip(shares, accuracies, strict=True), strict=True)) == {
        "only": ("40.00", "100.00"),
        "exhaustive": ("0.00", "-"),
        "optimal": ("40.00", "50.00"),
        "none": ("20.00", "0.00"),
    }


def test_certificates_are_read_below_a_heading(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "word\tpronunciation", "a\tp a", "b\tp a")
    heading = "word\tpronunciation\trank\tprobability\tcertificate\twarnings"
    rows = ("a\tp a\t1\t1\tonly\t", "b\tp\t1\t1\tonly\t")
    predicted = write_table(tmp_path / "predicted.tsv", heading, *rows)
    figures = run_evaluate(tmp_path, predicted, "--reference", gold).content
    assert figures["all"]["certificates"] == {"only": {"share": 1.0, "accuracy": 0.5}}


# --- probabilities ---


def test_probabilities_of_first_outputs_are_compared_with_accuracy(
    five_queries: Evaluation,
) -> None:
    """0.9 twice and right, 0.8 and right, 0.6 and wrong, 0 and wrong."""
    assert five_queries.content["probabilities"] == {
        "predictions": 5,
        "mean": pytest.approx((0.9 + 0.9 + 0.8 + 0.6 + 0) / 5),
        "calibration_error": pytest.approx((0.1 + 0.1 + 0.2 + 0.6 + 0) / 5),
    }


# --- empty outputs ---


def test_a_table_of_empty_outputs_is_one_of_predictions(tmp_path: Path) -> None:
    """Its certificates say so. Without them, it would be reported as a likely test file."""
    gold = write_table(tmp_path / "gold.tsv", "a\tp", "b\tp")
    predicted = write_table(tmp_path / "p.tsv", "a\t\t\t\tnone\t", "b\t\t\t\tnone\t")
    evaluation = run_evaluate(tmp_path, predicted, "--reference", gold)
    assert evaluation.errors == "warning: empty predictions: 2 of 2\n"
