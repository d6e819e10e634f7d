"""`onmt-entmax combine`: excluded probability, texts that are listed twice, and no output."""

from pathlib import Path

import pytest

from onmt_entmax.report.reading import read_report
from tests.cli.combining import average, combine, summary_of_average
from tests.cli.tables import write_table
from tests.reports import record

# --- excluded and repeated texts -------------------------------------------------------------


def test_excluded_probability_is_averaged_by_weight(tmp_path: Path) -> None:
    one = write_table(tmp_path / "one", record("s", "exhaustive", ("a", 0.6), excluded=0.4))
    two = write_table(tmp_path / "two", record("s", "exhaustive", ("a", 1.0)))
    output, report = tmp_path / "average.out", tmp_path / "average"
    files = ("--reports", one, two, "--output", output, "--report", report)
    combine(*files, "--weights", 3, 1)
    (averaged,) = read_report(report)
    assert averaged["excluded"] == pytest.approx((3 * 0.4 + 1 * 0.0) / 4)
    assert averaged["hypotheses"][0]["prob"] == pytest.approx((3 * 0.6 + 1 * 1.0) / 4)


def test_a_text_that_is_listed_twice_has_the_probability_of_both(tmp_path: Path) -> None:
    averaged = average(tmp_path, record("s", "exhaustive", ("a", 0.4), ("b", 0.3), ("b", 0.3)))
    listed = [(output["text"], output["prob"]) for output in averaged["hypotheses"]]
    assert listed == [("b", 0.6), ("a", 0.4)]
    assert averaged["mass"] == pytest.approx(1)


def test_a_single_text_beside_excluded_ones_is_not_counted_as_the_only_one(
    tmp_path: Path,
) -> None:
    """An excluded text is possible, too."""
    average(tmp_path, record("s", "exhaustive", ("a", 0.7), excluded=0.3))
    summary = summary_of_average(tmp_path)
    assert (summary["exhaustive_percent"], summary["single_hypothesis_percent"]) == (100, 0)


# --- no output -------------------------------------------------------------------------------


def test_without_outputs_the_unfinished_text_of_the_first_report_is_kept(tmp_path: Path) -> None:
    cut = [record("s", "none", bound=1.0, unfinished=text) for text in ("a b", "c d")]
    averaged = average(tmp_path, record("s", "none", bound=1.0), *cut)
    assert (averaged["hypotheses"], averaged["unfinished"]) == ([], "a b")
