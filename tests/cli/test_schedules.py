"""The schedules of trainings without a plan: numbers of updates, and lines of YAML."""

import pytest
import yaml

from onmt_entmax.cli.schedules import Schedule, decay_line, warmup_line

# Ten passes with batches of 10 are as many updates as there are pairs.
SCHEDULE = Schedule(passes=10, fewest=1_000, most=9_000, multiple=500, validations=20)
BATCH = 10


@pytest.mark.parametrize(
    ("size", "updates"),
    [
        pytest.param(2_000, 2_000, id="a multiple"),
        pytest.param(2_001, 2_500, id="rounded up"),
        pytest.param(3, 1_000, id="more passes over few pairs"),
        pytest.param(10**6, 9_000, id="fewer passes over many pairs"),
    ],
)
def test_updates_make_the_passes_over_the_pairs(size: int, updates: int) -> None:
    assert SCHEDULE.updates(size, BATCH) == updates


def test_validations_divide_the_updates() -> None:
    lines = SCHEDULE.limits(2_500, BATCH, 2_001, "row")
    assert yaml.safe_load("\n".join(lines)) == {
        "train_steps": 2_500,
        "valid_steps": 125,
        "save_checkpoint_steps": 125,
    }


def test_fewer_updates_than_validations_are_validated_one_by_one() -> None:
    assert "valid_steps: 1" in SCHEDULE.limits(5, BATCH, 100, "row")


def test_a_comment_gives_the_length_of_a_training_in_epochs() -> None:
    """2,500 updates of 10 pairs are 12.5 passes over 2,001 rows."""
    train_steps, *_ = SCHEDULE.limits(2_500, BATCH, 2_001, "row")
    assert train_steps.endswith("# about 12 epochs of 2,001 rows")


@pytest.mark.parametrize(
    ("updates", "warmup"),
    [
        pytest.param(1, 1, id="at least one update"),
        pytest.param(1_000, 200, id="a fifth"),
        pytest.param(9_000, 300, id="at most 300"),
    ],
)
def test_the_learning_rate_rises_in_a_fifth_of_few_updates(updates: int, warmup: int) -> None:
    assert warmup_line(updates, most=300) == f"warmup_steps: {warmup}"


@pytest.mark.parametrize(("planned", "end"), [(True, "max_seconds"), (False, "train_steps")])
def test_the_decay_names_what_ends_the_training(planned: bool, end: str) -> None:
    assert f"# to 0 at {end}" in decay_line(planned=planned)
