"""Decisions by expected utility between the texts of a report's record, and what they prove."""

from typing import Any

import pytest

from onmt_entmax.report.mbr import decide_record
from onmt_entmax.search.certificate import ROUNDING


def record(**changes: Any) -> dict[str, Any]:
    """Return a record of a search that has listed all of its support, except for what changes."""
    complete = {
        "certificate": "exhaustive",
        "bound": 0.0,
        "finished": 1,
        "excluded": 0.0,
        "hypotheses": [{"text": "a", "prob": 1.0}],
    }
    return {**complete, **changes}


def one_hypothesis(probability: float) -> list[dict[str, Any]]:
    """Return the hypotheses of a record that lists one text with this probability."""
    return [{"text": "a", "prob": probability}]


@pytest.mark.parametrize(("certificate", "level"), [("none", "found"), ("exhaustive", "exact")])
def test_a_bound_that_underflows_is_not_zero(certificate: str, level: str) -> None:
    """Another output may be more probable than the one found; both are rounded to 0."""
    underflowing = record(certificate=certificate, hypotheses=one_hypothesis(0.0))
    assert decide_record("exact_match", underflowing).level == level


def test_a_complete_list_has_no_slack() -> None:
    assert decide_record("edit_distance", record()).slack == 0


@pytest.mark.parametrize(
    ("changes", "unlisted"),
    [
        pytest.param(
            {"certificate": "optimal", "excluded": 0.2, "hypotheses": one_hypothesis(0.5)},
            0.3,
            id="neither listed nor excluded",
        ),
        pytest.param({"finished": 2, "hypotheses": one_hypothesis(0.7)}, 0.3, id="not listed"),
        pytest.param({"certificate": "optimal", "bound": 0.1}, 0.1, id="lost in rounding"),
        pytest.param(
            {"slack": 0.2, "hypotheses": one_hypothesis(0.9)}, 0.2, id="other sequences of a text"
        ),
        pytest.param(
            {"certificate": "optimal", "hypotheses": one_hypothesis(1.1)}, 0.0, id="more than all"
        ),
    ],
)
def test_the_slack_is_the_probability_that_no_listed_text_has(
    changes: dict[str, Any], unlisted: float
) -> None:
    """A text that is not listed may have it, and raise each expected utility by as much."""
    decision = decide_record("edit_distance", record(**changes))
    assert decision.slack == pytest.approx(unlisted + ROUNDING, abs=1e-12)


def test_an_unlisted_text_that_finished_may_be_the_most_probable() -> None:
    cut = record(finished=2, hypotheses=one_hypothesis(0.4))
    assert decide_record("exact_match", cut).level == "found"


def test_a_text_more_probable_than_the_bound_is_proven() -> None:
    bounded = record(certificate="optimal", bound=0.1, hypotheses=one_hypothesis(0.4))
    assert decide_record("exact_match", bounded).level == "proven"
