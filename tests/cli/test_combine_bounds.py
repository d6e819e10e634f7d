"""`onmt-entmax combine`: what is proven if reports do not list all outputs.

An average knows the probability of a text up to its slack: what reports that lack it may give it.
"""

import json
import math
from pathlib import Path

import pytest

from tests.cli.combining import Record, average
from tests.reports import record

# --- what reports do not list ----------------------------------------------------------------


def test_an_unlisted_string_that_finished_may_be_probable(tmp_path: Path) -> None:
    cut = record("x", "exhaustive", ("a", 0.6), mass=1.0, finished=2)  # -n_best 1
    other = record("x", "exhaustive", ("b", 0.7), ("a", 0.3))
    averaged = average(tmp_path, cut, other)
    a = (0.6 + 0.3) / 2
    most_of_b = (0.4 + 0.7) / 2  # the first report may have given `b` all that it does not list
    assert (averaged["certificate"], averaged["finished"]) == ("none", 2)
    assert averaged["gap"] == pytest.approx(math.log(a / most_of_b), abs=1e-4)


class TestAnAverageOfAnAverage:
    """The first report lists x alone, and leaves 0.5, all of which may be y."""

    FIRST = record("s", "optimal", ("x", 0.5), bound=0.5)
    SECOND = record("s", "exhaustive", ("y", 0.5), ("z", 0.5))
    THIRD = record("s", "exhaustive", ("x", 0.6), ("y", 0.4))

    @pytest.fixture
    def of_two(self, tmp_path: Path) -> Record:
        return average(tmp_path, self.FIRST, self.SECOND)

    @pytest.fixture
    def of_all(self, of_two: Record, tmp_path: Path) -> Record:
        return average(tmp_path, json.dumps(of_two), self.THIRD)

    def test_starts_from_half_of_what_the_first_report_leaves(self, of_two: Record) -> None:
        assert of_two["slack"] == of_two["bound"] == 0.5 / 2

    def test_is_not_certified(self, of_all: Record) -> None:
        assert (of_all["certificate"], of_all["proven"]) == ("none", 0)

    def test_knows_each_probability_up_to_its_slack(self, of_all: Record) -> None:
        listed = {output["text"]: output["prob"] for output in of_all["hypotheses"]}
        in_two = {"x": (0.5 + 0.0) / 2, "y": (0.5 + 0.5) / 2, "z": (0.0 + 0.5) / 2}
        in_all = {"x": (in_two["x"] + 0.6) / 2, "y": (in_two["y"] + 0.4) / 2, "z": in_two["z"] / 2}
        assert listed.keys() == in_all.keys()
        for text, truth in in_all.items():
            assert listed[text] <= truth <= listed[text] + of_all["slack"] + 1e-12  # of rounding


def test_a_text_that_one_report_lacks_may_have_its_slack(tmp_path: Path) -> None:
    """`a b` may have 0.25 in the first report, from several token sequences of at most 0.1."""
    cut = record("s", "optimal", ("x", 0.6), ("y", 0.15), bound=0.1, slack=0.25)
    averaged = average(tmp_path, cut, record("s", "exhaustive", ("a b", 0.8), ("x", 0.2)))
    x = (0.6 + 0.2) / 2
    most_of_a_b = (0.25 + 0.8) / 2
    assert averaged["bound"] == averaged["slack"] == pytest.approx(0.25 / 2)
    assert (averaged["certificate"], averaged["proven"]) == ("none", 0)
    assert averaged["gap"] == pytest.approx(math.log(x / most_of_a_b))


@pytest.mark.parametrize("bound", [0.25, 0.1])
def test_an_unlisted_sequence_may_become_a_listed_text(tmp_path: Path, bound: float) -> None:
    """What the first report does not list, 0.25, may all be `a b`, in strings of 0.1 each."""
    cut = record("s", "optimal", ("x", 0.4), ("a b", 0.35), bound=bound, slack=0.25)
    averaged = average(tmp_path, cut)
    assert averaged["certificate"] == "none"
    x, most_of_a_b = 0.4, 0.35 + 0.25
    assert averaged["gap"] == pytest.approx(math.log(x / most_of_a_b))


# A search finished two strings with a sum of 1, and `-n_best 1` listed only one.
LISTED_IN_PART = record("x", "exhaustive", ("a", 1.0), mass=1.0, finished=2)


def test_an_unlisted_string_may_be_as_improbable_as_rounding(tmp_path: Path) -> None:
    averaged = average(tmp_path, LISTED_IN_PART, record("x", "exhaustive", ("a", 1.0)))
    assert averaged["certificate"] == "optimal"
    rounding = 1e-5  # of the sum of a report
    assert averaged["bound"] == pytest.approx(rounding / 2)


def test_a_report_that_lists_some_outputs_is_not_exhaustive(tmp_path: Path) -> None:
    assert average(tmp_path, LISTED_IN_PART)["certificate"] == "optimal"


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
