"""Some hundred random models against enumeration; `tests.faults.certificates` checks thousands."""

import pytest

from tests.faults.certificates import CHECKS
from tests.faults.runner import Outcome, check_models


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return check_models(240, seed=7, checks=CHECKS)


def test_no_claim_about_random_models_is_wrong(outcome: Outcome) -> None:
    assert not outcome.failed


def test_every_kind_of_search_is_checked(outcome: Outcome) -> None:
    assert {kind for kind, _ in outcome.levels} == set(CHECKS)


def test_every_level_is_checked(outcome: Outcome) -> None:
    assert {level for _, level in outcome.levels} == {"exhaustive", "optimal", "none"}
