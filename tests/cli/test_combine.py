"""`onmt-entmax combine`: models averaged by the strings they found."""

import json
import math
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import combine as command
from onmt_entmax.report.reading import read_report
from tests.cli.combining import Record, combine
from tests.cli.tables import write_table
from tests.in_process import refusal
from tests.reports import record

# --- models of two directions ---


class Average(NamedTuple):
    """The average of a left-to-right and a right-to-left model for three sources, x, y and z."""

    reports: list[Path]
    output: str
    records: list[Record]
    summary: Record
    printed: str


@pytest.fixture
def directions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Average:
    """Reports have their texts in natural order, whichever way their models write."""
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


def test_an_average_of_exhaustive_reports_is_exhaustive(directions: Average) -> None:
    first, second, _ = directions.records
    assert (first["certificate"], first["proven"], first["bound"]) == ("exhaustive", 3, 0.0)
    assert (second["certificate"], second["finished"], second["gap"]) == ("exhaustive", 1, None)


def test_a_text_that_a_report_lacks_may_have_its_bound(directions: Average) -> None:
    """`e f` may have 0.45 with the second model: more than `f` has."""
    third = directions.records[2]
    assert third["certificate"] == "none"
    assert third["bound"] == pytest.approx((0.1 + 0.45) / 2)
    assert third["gap"] == pytest.approx(math.log((0.2 + 0.4) / (0.5 + 0.45)))


def test_the_summary_names_the_reports(directions: Average) -> None:
    assert directions.summary["sentences"] == 3
    assert directions.summary["reports"] == [str(report) for report in directions.reports]


def test_rates_of_certificates_are_printed(directions: Average) -> None:
    _, exhaustive, proven, only_one, *_ = directions.printed.splitlines()
    rates = [line.split()[-2] for line in (exhaustive, proven, only_one)]
    assert rates == ["66.67", "66.67", "33.33"]


def test_with_nine_tenths_of_the_weight_the_first_model_decides(
    directions: Average, tmp_path: Path
) -> None:
    output = tmp_path / "weighted"
    combine("--reports", *directions.reports, "--weights", 9, 1, "--output", output)
    assert output.read_text() == "a b\nd\ne f\n"


# --- minimum Bayes risk ---


class TestMinimumBayesRisk:
    """The middle of three outputs wins, which no model says is the most probable."""

    @pytest.fixture
    def printed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        """What is printed of a choice by edit distance; its report is `both`, its output `o`."""
        first = record("s", "exhaustive", ("a b c d", 0.8), ("a b c e", 0.2))
        second = record("s", "optimal", ("a x c e", 0.6), ("a b c e", 0.39), bound=0.01)
        reports = [write_table(tmp_path / "1", first), write_table(tmp_path / "2", second)]
        files = ("--reports", *reports, "--output", tmp_path / "o", "--report", tmp_path / "both")
        combine(*files, "--mbr", "edit_distance")
        return capsys.readouterr().out

    @pytest.fixture
    def averaged(self, printed: str, tmp_path: Path) -> Record:
        """The record of the average."""
        content: Record = json.loads((tmp_path / "both").read_text())
        return content

    @pytest.mark.usefixtures("printed")
    def test_chooses_the_output(self, tmp_path: Path) -> None:
        assert (tmp_path / "o").read_text() == "a b c e\n"

    def test_leaves_the_order_of_the_hypotheses(self, averaged: Record) -> None:
        assert averaged["hypotheses"][0]["text"] == "a b c d"

    def test_has_the_expected_utility(self, averaged: Record) -> None:
        best = averaged["mbr"]["ranking"][0]
        itself, others = (0.2 + 0.39) / 2, (0.8 + 0.6) / 2  # probabilities
        similarity = 3 / 4  # of the others, which differ in one of four tokens
        assert best["expected_utility"] == pytest.approx(itself + others * similarity)

    def test_is_proven_in_spite_of_its_slack(self, averaged: Record) -> None:
        """The second model did not list all outputs."""
        unlisted = 0.01 / 2  # of the second model
        rounding = 1e-5
        assert averaged["mbr"]["slack"] == pytest.approx(unlisted + rounding)
        assert averaged["mbr"]["certificate"] == "proven"

    def test_is_counted(self, printed: str, tmp_path: Path) -> None:
        summary = json.loads((tmp_path / "both.summary.json").read_text())
        assert summary["mbr"]["proven"] == 1
        assert "minimum Bayes risk proven                   100.00 %" in printed


# --- bad input ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("", "the following arguments are required: --reports", id="no reports"),
        pytest.param(
            "--reports one two", "one: 1 sentence, but another report has more", id="lengths"
        ),
        pytest.param("--reports one other", "other:1: another source than in", id="sources"),
        pytest.param(
            "--reports broken", "broken:1: not a record of an -exactness_report", id="no record"
        ),
        pytest.param("--reports none", "cannot be read", id="no file"),
        pytest.param(
            "--reports one one --weights 1", "--weights has 1 number for 2 reports", id="weights"
        ),
        pytest.param(
            "--reports one one --weights nan 1", "--weights must be positive numbers", id="nan"
        ),
        pytest.param(
            "--reports one one --weights 1 0", "leave out this report and its weight", id="zero"
        ),
        pytest.param(
            "--reports one --reports one --weights 1e308 1e308", "a float can hold", id="infinity"
        ),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    line = record("x", "exhaustive", ("a", 1.0))
    write_table(tmp_path / "one", line)
    write_table(tmp_path / "two", line, line)
    write_table(tmp_path / "other", record("y", "exhaustive", ("a", 1.0)))
    write_table(tmp_path / "broken", '{"id": 0}')
    assert message in refusal(command.main, [*arguments.split(), "--output", "output"])
    assert not Path("output").exists()
