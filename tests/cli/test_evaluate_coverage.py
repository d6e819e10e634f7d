"""`onmt-entmax evaluate` with other predictions, and with the report of its own."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import evaluation_of, write_files
from tests.cli.tables import write_table
from tests.commands import json_lines
from tests.in_process import refusal
from tests.reports import record


class Compared(NamedTuple):
    """Ten words, of which these predictions have 8 right and the others 3."""

    arguments: list[str]
    predictions: Path
    report: Path
    """The report of these predictions, of which the first five are certain."""


@pytest.fixture
def compared(tmp_path: Path) -> Compared:
    sources = ["lang=x +V a"] * 5 + ["lang=y +V a"] * 5
    predictions = ["a"] * 8 + ["b"] * 2
    proofs = [("exhaustive", 1.0)] * 5 + [("optimal", 0.6)] * 5
    report = [
        record(source, level, (text, prob))
        for source, text, (level, prob) in zip(sources, predictions, proofs, strict=True)
    ]
    arguments = write_files(
        tmp_path,
        source=sources,
        reference=["a"] * 10,
        predictions=predictions,
        against=["a"] * 2 + ["b"] * 7 + ["a"],
        report=report,
    )
    return Compared(arguments, tmp_path / "predictions", tmp_path / "report")


def test_a_comparison_is_the_test_of_mcnemar(compared: Compared, tmp_path: Path) -> None:
    """Six of all words are right here alone, and one there alone: p = 2 (1 + 7) / 2 ** 7.

    The seven are like throws of a coin: of 2 ** 7 outcomes, 1 + 7 have at most one on this side.
    """
    against = evaluation_of(tmp_path, compared.arguments).content["against"]
    assert against["all"] == {"won": 6, "lost": 1, "p": 0.125}
    assert against["x"] == {"won": 3, "lost": 0, "p": 0.25}


def test_coverage_is_the_share_and_the_quality_of_each_rule(
    compared: Compared, tmp_path: Path
) -> None:
    coverage = evaluation_of(tmp_path, compared.arguments).content["coverage"]
    by_rule = {rule.pop("rule"): rule for rule in coverage}
    for rule in ("all", "p >= 0.5", "optimal or more"):
        assert by_rule[rule] == {"share": 1.0, "quality": 80.0}
    for rule in ("p >= 0.7", "exhaustive", "only one possible"):
        assert by_rule[rule] == {"share": 0.5, "quality": 100.0}


def test_coverage_does_not_keep_abstentions(compared: Compared, tmp_path: Path) -> None:
    """Here the two wrong words are left out."""
    records = json_lines(compared.report)
    for wrong in records[8:]:
        wrong["abstained"] = True
    write_table(compared.report, *map(json.dumps, records))
    write_table(compared.predictions, *["a"] * 8, *[""] * 2)
    coverage = evaluation_of(tmp_path, compared.arguments).content["coverage"]
    assert coverage[0] == {"rule": "all", "share": 0.8, "quality": 100.0}


def test_a_report_that_abstains_from_a_prediction_is_refused(compared: Compared) -> None:
    records = json_lines(compared.report)
    records[9]["abstained"] = True
    write_table(compared.report, *map(json.dumps, records))
    assert "report: not of " in refusal(evaluate.main, compared.arguments)


def test_a_report_in_another_order_is_refused(compared: Compared) -> None:
    records = compared.report.read_text().splitlines()
    write_table(compared.report, *reversed(records))
    assert "report: not of " in refusal(evaluate.main, compared.arguments)


def test_an_empty_report_is_refused(compared: Compared) -> None:
    write_table(compared.report)
    assert "the report is empty" in refusal(evaluate.main, compared.arguments)
