"""Decisions by expected utility of a report's record."""

import pytest

from onmt_entmax.report.mbr import decide_record


@pytest.mark.parametrize(("certificate", "level"), [("none", "found"), ("exhaustive", "exact")])
def test_a_bound_that_underflows_is_not_zero(certificate: str, level: str) -> None:
    """Another output may be more probable than the one found; both are rounded to 0."""
    record = {
        "certificate": certificate,
        "bound": 0.0,
        "finished": 1,
        "excluded": 0.0,
        "hypotheses": [{"text": "a", "prob": 0.0}],
    }
    assert decide_record("exact_match", record).level == level
