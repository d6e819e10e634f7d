"""Decisions by expected utility of a report's record."""

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


def hypotheses(probability: float) -> list[dict[str, Any]]:
    """Return one hypothesis."""
    return [{"text": "a", "prob": probability}]


@pytest.mark.parametrize(("certificate", "level"), [("none", "found"), ("exhaustive", "exact")])
def test_a_bound_that_underflows_is_not_zero(certificate: str, level: str) -> None:
    """Another output may be more probable than the one found; both are rounded to 0."""
    underflowing = record(certificate=certificate, hypotheses=hypotheses(0.0))
    assert decide_record("exact_match", underflowing).level == level


def test_nothing_is_left_beside_a_complete_list() -> None:
    assert decide_record("edit_distance", record()).slack == 0


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        pytest.param(
            {"certificate": "optimal", "excluded": 0.2, "hypotheses": hypotheses(0.5)},
            0.3,
            id="neither listed nor excluded",
        ),
        pytest.param({"finished": 2, "hypotheses": hypotheses(0.7)}, 0.3, id="not listed"),
        pytest.param({"certificate": "optimal", "bound": 0.1}, 0.1, id="lost in rounding"),
        pytest.param(
            {"slack": 0.2, "hypotheses": hypotheses(0.9)}, 0.2, id="other sequences of a text"
        ),
        pytest.param(
            {"certificate": "optimal", "hypotheses": hypotheses(1.1)}, 0.0, id="more than all"
        ),
    ],
)
def test_what_is_left_may_be_right(changes: dict[str, Any], left: float) -> None:
    """So each expected utility may be so much higher, and by a margin for rounding."""
    decision = decide_record("edit_distance", record(**changes))
    assert decision.slack == pytest.approx(left + ROUNDING, abs=1e-12)


def test_a_finished_text_that_is_not_listed_may_have_what_is_left() -> None:
    cut = record(finished=2, hypotheses=hypotheses(0.4))
    assert decide_record("exact_match", cut).level == "found"


def test_a_text_that_did_not_finish_has_the_bound_at_most() -> None:
    bounded = record(certificate="optimal", bound=0.1, hypotheses=hypotheses(0.4))
    assert decide_record("exact_match", bounded).level == "proven"
