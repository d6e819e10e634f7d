"""`onmt-entmax combine`: what is proven if reports do not list all outputs.

A report may leave some probability unlisted. The model may give all of it to a single text that the
report lacks. So the probabilities of an average are lower bounds, and the true ones exceed them by
at most the *slack* of the average.
"""

import json
import math
from pathlib import Path

import pytest

from tests.cli.combining import Record, average
from tests.reports import record

ROUNDING = 1e-5  # of a sum of float32 probabilities

# --- texts that a report does not list -------------------------------------------------------


def test_an_output_that_a_report_left_out_may_be_probable(tmp_path: Path) -> None:
    """The first search found two outputs with a sum of 1, and `-n_best 1` left out one."""
    first = record("x", "exhaustive", ("a", 0.6), mass=1.0, finished=2)
    second = record("x", "exhaustive", ("b", 0.7), ("a", 0.3))
    averaged = average(tmp_path, first, second)
    a, most_of_b = (0.6 + 0.3) / 2, (0.4 + ROUNDING + 0.7) / 2
    assert (averaged["certificate"], averaged["finished"]) == ("none", 2)
    assert averaged["gap"] == pytest.approx(math.log(a / most_of_b))


class TestAnAverageOfAnAverage:
    """The first report lists x alone, and leaves 0.5 unlisted, all of which y may have."""

    FIRST = record("s", "optimal", ("x", 0.5), bound=0.5)
    SECOND = record("s", "exhaustive", ("y", 0.5), ("z", 0.5))
    THIRD = record("s", "exhaustive", ("x", 0.6), ("y", 0.4))

    @pytest.fixture
    def inner(self, tmp_path: Path) -> Record:
        """The average of the first two reports."""
        return average(tmp_path, self.FIRST, self.SECOND)

    @pytest.fixture
    def outer(self, inner: Record, tmp_path: Path) -> Record:
        """The average of that average and the third report."""
        return average(tmp_path, json.dumps(inner), self.THIRD)

    def test_starts_from_half_of_what_the_first_report_leaves(self, inner: Record) -> None:
        assert inner["slack"] == inner["bound"] == 0.5 / 2

    def test_is_not_certified(self, outer: Record) -> None:
        assert (outer["certificate"], outer["proven"]) == ("none", 0)

    def test_has_each_true_probability_within_its_slack(self, outer: Record) -> None:
        """Suppose that y really has the 0.5 that the first report leaves unlisted."""
        inner_truths = {"x": (0.5 + 0.0) / 2, "y": (0.5 + 0.5) / 2, "z": (0.0 + 0.5) / 2}
        third = {"x": 0.6, "y": 0.4, "z": 0.0}
        truths = {text: (inner_truths[text] + third[text]) / 2 for text in third}
        listed = {output["text"]: output["prob"] for output in outer["hypotheses"]}
        assert listed.keys() == truths.keys()
        error = 1e-12  # of sums in float64
        for text, truth in truths.items():
            assert listed[text] <= truth <= listed[text] + outer["slack"] + error


# --- texts of several token sequences, whose reports have a slack ----------------------------


def test_an_unlisted_text_may_be_as_probable_as_the_slack_of_the_report(tmp_path: Path) -> None:
    """`a b` may have 0.25 in the first report: several token sequences, of at most 0.1 each."""
    first = record("s", "optimal", ("x", 0.6), ("y", 0.15), bound=0.1, slack=0.25)
    second = record("s", "exhaustive", ("a b", 0.8), ("x", 0.2))
    averaged = average(tmp_path, first, second)
    x, most_of_a_b = (0.6 + 0.2) / 2, (0.25 + 0.8) / 2
    assert averaged["bound"] == averaged["slack"] == pytest.approx(0.25 / 2)
    assert (averaged["certificate"], averaged["proven"]) == ("none", 0)
    assert averaged["gap"] == pytest.approx(math.log(x / most_of_a_b))


@pytest.mark.parametrize("bound", [0.25, 0.1])
def test_a_listed_text_may_have_the_slack_besides_its_probability(
    tmp_path: Path, bound: float
) -> None:
    """What is not listed, 0.25, may be other token sequences of `a b`, of at most `bound` each."""
    report = record("s", "optimal", ("x", 0.4), ("a b", 0.35), bound=bound, slack=0.25)
    averaged = average(tmp_path, report)
    x, most_of_a_b = 0.4, 0.35 + 0.25
    assert averaged["certificate"] == "none"
    assert averaged["gap"] == pytest.approx(math.log(x / most_of_a_b))


# --- outputs that are as improbable as rounding ----------------------------------------------

# The search found two outputs with a sum of 1, and its report has the one of probability 1.
LISTED_IN_PART = record("x", "exhaustive", ("a", 1.0), mass=1.0, finished=2)


def test_the_bound_of_an_unlisted_output_allows_for_rounding(tmp_path: Path) -> None:
    """The listed probability 1.0 may be rounded, and the true one a little smaller."""
    averaged = average(tmp_path, LISTED_IN_PART, record("x", "exhaustive", ("a", 1.0)))
    assert averaged["certificate"] == "optimal"
    assert averaged["bound"] == pytest.approx(ROUNDING / 2)


def test_a_report_that_does_not_list_all_outputs_is_not_exhaustive(tmp_path: Path) -> None:
    assert average(tmp_path, LISTED_IN_PART)["certificate"] == "optimal"


# --- which levels an average can have --------------------------------------------------------

ONE_OUTPUT = record("s", "exhaustive", ("a", 1.0))  # which has all probability


@pytest.mark.parametrize("level", ["optimal", "none"])
def test_an_average_is_not_exhaustive_if_one_of_its_reports_is_not(
    tmp_path: Path, level: str
) -> None:
    """The bound 0 of such a report was too small for a float; that of the average is above 0."""
    averaged = average(tmp_path, ONE_OUTPUT, record("s", level, ("a", 1.0), bound=0.0))
    assert averaged["certificate"] == "optimal"
    assert 0 < averaged["bound"] < 1e-300


def test_an_average_of_a_report_with_itself_is_exhaustive(tmp_path: Path) -> None:
    assert average(tmp_path, ONE_OUTPUT, ONE_OUTPUT)["certificate"] == "exhaustive"
