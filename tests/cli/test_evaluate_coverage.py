"""`onmt-entmax evaluate --report`: the share and the quality of what rules of certificates keep."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import run_evaluate, write_files
from tests.cli.tables import write_table
from tests.commands import json_lines
from tests.in_process import refusal
from tests.reports import record


class Reported(NamedTuple):
    """Ten words with their report: the first five are certain, and the last two are wrong."""

    arguments: list[str]
    predictions: Path
    report: Path


@pytest.fixture
def reported(tmp_path: Path) -> Reported:
    predictions = ["a"] * 8 + ["b"] * 2
    proofs = [("exhaustive", 1.0)] * 5 + [("optimal", 0.6)] * 5
    report = [
        record("lang=x +V a", level, (text, prob))
        for text, (level, prob) in zip(predictions, proofs, strict=True)
    ]
    arguments = write_files(
        tmp_path,
        source=["lang=x +V a"] * 10,
        reference=["a"] * 10,
        predictions=predictions,
        report=report,
    )
    return Reported(arguments, tmp_path / "predictions", tmp_path / "report")


@pytest.mark.parametrize(
    ("rules", "share", "quality"),
    [
        pytest.param(["all", "p >= 0.5", "optimal or more"], 1.0, 80.0, id="all words"),
        pytest.param(
            ["p >= 0.7", "exhaustive", "only one possible"], 0.5, 100.0, id="certain words"
        ),
    ],
)
def test_coverage_is_the_share_and_the_quality_of_what_a_rule_keeps(
    reported: Reported, tmp_path: Path, rules: list[str], share: float, quality: float
) -> None:
    coverage = run_evaluate(tmp_path, *reported.arguments).content["coverage"]
    for rule in rules:
        assert {"rule": rule, "share": share, "quality": quality} in coverage


def test_coverage_does_not_keep_abstentions(reported: Reported, tmp_path: Path) -> None:
    """They are empty lines among the predictions: here, in the place of the two wrong words."""
    records = json_lines(reported.report)
    for wrong in records[8:]:
        wrong["abstained"] = True
    write_table(reported.report, *map(json.dumps, records))
    write_table(reported.predictions, *["a"] * 8, *[""] * 2)
    coverage = run_evaluate(tmp_path, *reported.arguments).content["coverage"]
    assert coverage[0] == {"rule": "all", "share": 0.8, "quality": 100.0}


def test_a_report_that_abstains_from_a_prediction_is_refused(reported: Reported) -> None:
    records = json_lines(reported.report)
    records[9]["abstained"] = True
    write_table(reported.report, *map(json.dumps, records))
    message = f"{reported.report}: not of {reported.predictions}"
    assert refusal(evaluate.main, reported.arguments).endswith(message)


def test_a_report_of_the_predictions_in_another_order_is_refused(reported: Reported) -> None:
    records = reported.report.read_text().splitlines()
    write_table(reported.report, *reversed(records))
    message = f"{reported.report}: not of {reported.predictions}"
    assert refusal(evaluate.main, reported.arguments).endswith(message)


def test_an_empty_report_is_refused(reported: Reported) -> None:
    write_table(reported.report)
    assert "the report is empty" in refusal(evaluate.main, reported.arguments)
