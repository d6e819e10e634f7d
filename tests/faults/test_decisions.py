"""A few random models against enumeration; `tests.faults.decisions` checks thousands."""

import pytest

from tests.faults.decisions import CHECKS
from tests.faults.runner import CheckedModels, check_models

# Kinds of checks take turns, so each gets seven models. Those of this seed meet every level.
MODELS = 7 * len(CHECKS)
SEED = 1


@pytest.fixture(scope="module")
def checked() -> CheckedModels:
    return check_models(MODELS, seed=SEED, checks=CHECKS)


def test_no_decision_and_no_sample_of_some_random_models_is_wrong(checked: CheckedModels) -> None:
    assert not checked.failed


def test_every_kind_of_decision_and_of_sample_is_checked(checked: CheckedModels) -> None:
    assert {kind for kind, _ in checked.levels} == set(CHECKS)


def test_every_level_is_checked(checked: CheckedModels) -> None:
    """A check of decisions returns levels such as "chrf proven"; one of samples, "sampled"."""
    levels = {level.split()[-1] for _, level in checked.levels}
    assert {"exact", "proven", "found", "none"} <= levels
