"""A few random models against enumeration; `tests.faults.decisions` checks thousands."""

from tests.faults.certificates import check_models
from tests.faults.decisions import KINDS


def test_no_decision_and_no_sample_of_some_random_models_is_wrong() -> None:
    levels, failed = check_models(49, 3, KINDS)
    assert not failed
    assert {kind for kind, _ in levels} == set(KINDS)
    reached = {level.split()[-1] for _, level in levels}
    assert {"exact", "proven", "found", "none"} <= reached
