"""`onmt-entmax combine`: the average of models of two directions, from their reports."""

import json
import math
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.report.reading import read_report
from tests.cli.combining import Record, combine
from tests.cli.tables import write_table
from tests.reports import record


class Average(NamedTuple):
    """The average of a left-to-right and a right-to-left model for three sources, x, y and z."""

    reports: list[Path]
    output: str
    records: list[Record]
    summary: Record
    printed: str


@pytest.fixture
def directions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Average:
    """Both reports have their texts in natural order, whichever way their models write."""
    forward = write_table(
        tmp_path / "forward.jsonl",
        record("x", "exhaustive", ("a b", 0.6), ("a c", 0.4)),
        record("y", "exhaustive", ("d", 1.0)),
        record("z", "optimal", ("e f", 0.5), ("f", 0.2), bound=0.1),
    )
    backward = write_table(
        tmp_path / "backward.jsonl",
        record("x", "exhaustive", ("a c", 0.9), ("b", 0.1)),
        record("y", "exhaustive", ("d", 1.0)),
        record("z", "none", ("f", 0.4), bound=0.45),
    )
    output, report = tmp_path / "both.pred", tmp_path / "both.jsonl"
    combine("--reports", forward, backward, "--output", output, "--report", report)
    summary = json.loads((tmp_path / "both.jsonl.summary.json").read_text())
    records = list(read_report(report))
    return Average(
        [forward, backward], output.read_text(), records, summary, capsys.readouterr().out
    )


def test_the_output_is_the_most_probable_of_the_average(directions: Average) -> None:
    assert directions.output == "a c\nd\nf\n"


def test_probabilities_of_equal_texts_are_averaged(directions: Average) -> None:
    hypotheses = directions.records[0]["hypotheses"]
    assert [hypothesis["text"] for hypothesis in hypotheses] == ["a c", "a b", "b"]
    probs = [hypothesis["prob"] for hypothesis in hypotheses]
    assert probs == pytest.approx([(0.4 + 0.9) / 2, 0.6 / 2, 0.1 / 2])


@pytest.mark.parametrize("source", [0, 1])
def test_an_average_of_exhaustive_reports_is_exhaustive(directions: Average, source: int) -> None:
    average = directions.records[source]
    assert average["certificate"] == "exhaustive"
    assert (average["bound"], average["gap"]) == (0, None)  # the gap is infinite: null in JSON


@pytest.mark.parametrize(("source", "texts"), [(0, 3), (1, 1)])
def test_all_texts_of_exhaustive_reports_are_proven(
    directions: Average, source: int, texts: int
) -> None:
    average = directions.records[source]
    assert average["proven"] == average["finished"] == texts


def test_an_unlisted_text_may_be_as_probable_as_the_bounds_of_the_reports(
    directions: Average,
) -> None:
    """For z, the first report leaves 0.1 to other texts, and the second one 0.45."""
    assert directions.records[2]["bound"] == pytest.approx((0.1 + 0.45) / 2)


def test_an_average_that_another_text_may_exceed_has_no_certificate(directions: Average) -> None:
    """`e f` may have 0.45 by the second model, and then has more than `f` on average."""
    average = directions.records[2]
    f, most_of_e_f = (0.2 + 0.4) / 2, (0.5 + 0.45) / 2
    assert average["certificate"] == "none"
    assert average["gap"] == pytest.approx(math.log(f / most_of_e_f))


def test_the_summary_names_the_reports(directions: Average) -> None:
    assert directions.summary["sentences"] == 3
    assert directions.summary["reports"] == [str(report) for report in directions.reports]


def test_rates_of_certificates_are_printed(directions: Average) -> None:
    """Both reports are exhaustive for two of three sources, x and y; y has a single text."""
    _, exhaustive, proven, only_one, *_ = directions.printed.splitlines()
    rates = [line.split()[-2] for line in (exhaustive, proven, only_one)]
    assert rates == ["66.67", "66.67", "33.33"]


def test_with_nine_tenths_of_the_weight_the_first_model_decides(
    directions: Average, tmp_path: Path
) -> None:
    output = tmp_path / "weighted"
    combine("--reports", *directions.reports, "--weights", 9, 1, "--output", output)
    assert output.read_text() == "a b\nd\ne f\n"
