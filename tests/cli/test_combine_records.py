"""`onmt-entmax combine`: excluded probability, texts that are listed twice, and no output."""

import json
from pathlib import Path

import pytest

from onmt_entmax.report.reading import read_report
from tests.cli.combining import average, combine
from tests.cli.tables import write_table
from tests.reports import record

# --- excluded and repeated texts -------------------------------------------------------------


def test_excluded_probability_is_averaged_by_weight(tmp_path: Path) -> None:
    one = write_table(tmp_path / "one", record("s", "exhaustive", ("a", 0.6), excluded=0.4))
    two = write_table(tmp_path / "two", record("s", "exhaustive", ("a", 1.0)))
    files = ("--reports", one, two, "--output", tmp_path / "o", "--report", tmp_path / "r")
    combine(*files, "--weights", 3, 1)
    (averaged,) = read_report(tmp_path / "r")
    assert averaged["excluded"] == pytest.approx(0.3)
    assert averaged["hypotheses"][0]["prob"] == pytest.approx(0.7)


def test_a_text_that_is_listed_twice_has_the_probability_of_both(tmp_path: Path) -> None:
    averaged = average(tmp_path, record("s", "exhaustive", ("a", 0.4), ("b", 0.3), ("b", 0.3)))
    listed = [(output["text"], output["prob"]) for output in averaged["hypotheses"]]
    assert listed == [("b", 0.6), ("a", 0.4)]
    assert averaged["mass"] == pytest.approx(1)


def test_a_single_text_beside_excluded_ones_is_not_counted_as_the_only_one(
    tmp_path: Path,
) -> None:
    average(tmp_path, record("s", "exhaustive", ("a", 0.7), excluded=0.3))
    summary = json.loads((tmp_path / "r.jsonl.summary.json").read_text())
    assert (summary["exhaustive_percent"], summary["single_hypothesis_percent"]) == (100, 0)


# --- no output -------------------------------------------------------------------------------


def test_without_outputs_the_unfinished_text_of_the_first_report_is_kept(tmp_path: Path) -> None:
    cut = [record("s", "none", bound=1.0, unfinished=text) for text in ("a b", "c d")]
    averaged = average(tmp_path, record("s", "none", bound=1.0), *cut)
    assert (averaged["hypotheses"], averaged["unfinished"]) == ([], "a b")
