"""Some hundred random models against enumeration; `tests.faults.certificates` checks thousands."""

from tests.faults.certificates import KINDS, check_models


def test_no_claim_about_random_models_is_wrong() -> None:
    levels, failed = check_models(240, seed=7)
    assert not failed
    assert {kind for kind, _ in levels} == set(KINDS)
    reached = {level for _, level in levels}
    assert {"exhaustive", "optimal", "none"} <= reached
