"""`onmt-entmax combine`: what is proven if reports do not list all outputs.

An average knows the probability of a text up to its slack: what reports that lack it may give it.
"""

import json
import math
from pathlib import Path

import pytest

from onmt_entmax.report.reading import read_report
from tests.cli.combining import average, combine
from tests.cli.tables import write_table
from tests.reports import record

# --- what reports do not list ----------------------------------------------------------------


def test_a_string_that_finished_and_is_not_listed_is_not_taken_for_impossible(
    tmp_path: Path,
) -> None:
    cut = record("x", "exhaustive", ("a", 0.6), mass=1.0, finished=2)  # -n_best 1
    other = record("x", "exhaustive", ("b", 0.7), ("a", 0.3))
    averaged = average(tmp_path, cut, other)
    # `b` may have 0.4 with the first and then 0.55 in all, more than the 0.45 of `a`.
    assert (averaged["certificate"], averaged["finished"]) == ("none", 2)
    assert averaged["gap"] == pytest.approx(math.log(0.45 / 0.55), abs=1e-4)


def test_a_mixture_is_known_up_to_its_slack(tmp_path: Path) -> None:
    """`y` has 0.45 in the end and `x` 0.425: the first report does not say that of `y`."""
    one = record("s", "optimal", ("x", 0.5), bound=0.5)
    two = record("s", "exhaustive", ("y", 0.5), ("z", 0.5))
    three = record("s", "exhaustive", ("x", 0.6), ("y", 0.4))
    both = average(tmp_path, one, two)
    assert both["slack"] == both["bound"] == 0.25
    averaged = average(tmp_path, json.dumps(both), three)
    assert (averaged["certificate"], averaged["proven"]) == ("none", 0)
    listed = {output["text"]: output["prob"] for output in averaged["hypotheses"]}
    for text, truth in {"x": 0.425, "y": 0.45, "z": 0.125}.items():
        assert listed[text] <= truth <= listed[text] + averaged["slack"] + 1e-12


def test_a_text_that_one_report_lacks_may_have_its_slack(tmp_path: Path) -> None:
    """`a b` may have 0.25 in the first report, from several token sequences of at most 0.1."""
    cut = record("s", "optimal", ("x", 0.6), ("y", 0.15), bound=0.1, slack=0.25)
    averaged = average(tmp_path, cut, record("s", "exhaustive", ("a b", 0.8), ("x", 0.2)))
    # `x` has 0.4 to 0.525, `a b` 0.4 to 0.525 too: nothing is proven.
    assert averaged["bound"] == averaged["slack"] == pytest.approx(0.125)
    assert (averaged["certificate"], averaged["proven"]) == ("none", 0)
    assert averaged["gap"] == pytest.approx(math.log(0.4 / 0.525))


@pytest.mark.parametrize("bound", [0.25, 0.1])
def test_an_unlisted_sequence_may_become_a_listed_text(tmp_path: Path, bound: float) -> None:
    """What the first report does not list, 0.25, may all be `a b`, in strings of 0.1 each."""
    cut = record("s", "optimal", ("x", 0.4), ("a b", 0.35), bound=bound, slack=0.25)
    averaged = average(tmp_path, cut)
    assert averaged["certificate"] == "none"
    assert averaged["gap"] == pytest.approx(math.log(0.4 / 0.6))


# Of two strings that a search finished, `-n_best 1` listed one, with a sum of 1.
LISTED_IN_PART = record("x", "exhaustive", ("a", 1.0), mass=1.0, finished=2)


def test_an_unlisted_string_may_be_as_improbable_as_rounding(tmp_path: Path) -> None:
    averaged = average(tmp_path, LISTED_IN_PART, record("x", "exhaustive", ("a", 1.0)))
    assert averaged["certificate"] == "optimal"
    rounding = 1e-5  # of the sum of a report
    assert averaged["bound"] == pytest.approx(rounding / 2)


def test_a_report_that_lists_some_outputs_is_not_exhaustive(tmp_path: Path) -> None:
    assert average(tmp_path, LISTED_IN_PART)["certificate"] == "optimal"


# --- tokens that models did not know ---------------------------------------------------------

BEST = record("s t", "exhaustive", ("a", 1.0), source_tokens=2, unseen={"t": 1})
SOME = record("s t", "exhaustive", ("a", 1.0), source_tokens=2, unknown={"s": 1})
WORST = record(
    "s t", "exhaustive", ("a", 1.0), source_tokens=3, unknown={"s": 1, "t": 2}, unseen={"s": 1}
)


@pytest.mark.parametrize(
    "reports",
    [(BEST, SOME, WORST), (WORST, SOME, BEST), (SOME, WORST, BEST)],
    ids=["worst last", "worst first", "worst between"],
)
def test_an_average_has_the_unknown_tokens_of_the_worst_model(
    tmp_path: Path, reports: tuple[str, ...]
) -> None:
    averaged = average(tmp_path, *reports)
    assert (averaged["source_tokens"], averaged["unknown"]) == (3, {"s": 1, "t": 2})
    assert averaged["unseen"] == {"s": 1}
    summary = json.loads((tmp_path / "r.jsonl.summary.json").read_text())
    assert (summary["source_tokens"], summary["unknown_tokens"]) == (3, 3)


# --- which levels an average can have --------------------------------------------------------

SURE = record("s", "exhaustive", ("a", 1.0))


@pytest.mark.parametrize("level", ["optimal", "none"])
def test_an_average_with_a_report_that_is_not_exhaustive_is_not(tmp_path: Path, level: str) -> None:
    """A bound that a float cannot hold is not 0."""
    averaged = average(tmp_path, SURE, record("s", level, ("a", 1.0), bound=0.0))
    assert averaged["certificate"] == "optimal"
    assert 0 < averaged["bound"] < 1e-300


def test_an_average_of_a_report_with_itself_is_exhaustive(tmp_path: Path) -> None:
    assert average(tmp_path, SURE, SURE)["certificate"] == "exhaustive"


def test_without_outputs_the_unfinished_text_of_the_first_report_is_kept(tmp_path: Path) -> None:
    cut = [record("s", "none", bound=1.0, unfinished=text) for text in ("a b", "c d")]
    averaged = average(tmp_path, record("s", "none", bound=1.0), *cut)
    assert (averaged["hypotheses"], averaged["unfinished"]) == ([], "a b")


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


def test_one_string_has_not_all_the_probability_where_some_was_excluded(tmp_path: Path) -> None:
    average(tmp_path, record("s", "exhaustive", ("a", 0.7), excluded=0.3))
    summary = json.loads((tmp_path / "r.jsonl.summary.json").read_text())
    assert (summary["exhaustive_percent"], summary["single_hypothesis_percent"]) == (100, 0)
