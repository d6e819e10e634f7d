"""Some hundred random models against enumeration; `tests.faults.certificates` checks thousands."""

import pytest

from tests.faults.certificates import CHECKS
from tests.faults.runner import Outcome, check_models

# Kinds of checks take turns, so each gets 18 models or more. Those of this seed meet every level.
MODELS = 240
SEED = 7


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return check_models(MODELS, seed=SEED, checks=CHECKS)


def test_no_claim_about_random_models_is_wrong(outcome: Outcome) -> None:
    assert not outcome.failed


def test_every_kind_of_search_is_checked(outcome: Outcome) -> None:
    assert {kind for kind, _ in outcome.levels} == set(CHECKS)


def test_every_level_is_checked(outcome: Outcome) -> None:
    assert {level for _, level in outcome.levels} == {"exhaustive", "optimal", "none"}
