"""Some hundred random models against enumeration; `tests.faults.certificates` checks thousands."""

import pytest

from tests.faults.certificates import CHECKS
from tests.faults.runner import CheckedModels, check_models

# Kinds of checks take turns, so each gets 18 models or more. Those of this seed meet every level.
MODELS = 240
SEED = 7


@pytest.fixture(scope="module")
def checked() -> CheckedModels:
    return check_models(MODELS, seed=SEED, checks=CHECKS)


def test_no_claim_about_random_models_is_wrong(checked: CheckedModels) -> None:
    assert not checked.failed


def test_every_kind_of_search_is_checked(checked: CheckedModels) -> None:
    assert {kind for kind, _ in checked.levels} == set(CHECKS)


def test_every_level_is_checked(checked: CheckedModels) -> None:
    assert {level for _, level in checked.levels} == {"exhaustive", "optimal", "none"}
