"""Runs whose last checkpoint is damaged."""

from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import STATE, CheckpointError, load
from tests.train.runs import State, change_state, train_again


def drop_a_row_of_a_moment(state: State) -> None:
    moments = state["optimizer"][0]
    moments["exp_avg"] = moments["exp_avg"][:-1]


def make_a_moment_a_number(state: State) -> None:
    """A fused optimiser would write beyond its end."""
    state["optimizer"][0]["exp_avg"] = torch.tensor(0.0)


def repeat_a_number_as_a_moment(state: State) -> None:
    """The moment has the shape of its weight, but one number in memory."""
    moments = state["optimizer"][0]
    moments["exp_avg"] = torch.zeros(1).expand(moments["exp_avg"].shape)


def make_a_moment_sparse(state: State) -> None:
    moments = state["optimizer"][0]
    moments["exp_avg"] = moments["exp_avg"].to_sparse()


def forget_the_steps_of_the_optimiser(state: State) -> None:
    del state["optimizer"][0]["step"]


def let_the_optimiser_go_back(state: State) -> None:
    state["optimizer"][0]["step"] = torch.tensor(-1.0)


def forget_a_moment(state: State) -> None:
    del state["optimizer"][0]["exp_avg_sq"]


def forget_random_states(state: State) -> None:
    del state["random"]


def forget_random_states_of_gpus(state: State) -> None:
    del state["random"]["cuda"]


def add_moments_of_no_weight(state: State) -> None:
    state["optimizer"][999] = state["optimizer"][0]


def forget_the_step(state: State) -> None:
    del state["run"]["step"]


def write_the_step_as_a_word(state: State) -> None:
    state["run"]["step"] = "six"


def forget_when_the_last_validation_was(state: State) -> None:
    state["run"]["validated"] = None


def go_back_before_the_first_update(state: State) -> None:
    state["run"]["step"] = -6


def let_no_time_have_passed(state: State) -> None:
    state["run"]["seconds"] = float("nan")


def write_the_loss_as_a_word(state: State) -> None:
    state["run"]["previous_loss"] = "low"


def write_the_position_as_a_number(state: State) -> None:
    state["position"] = 7


def begin_between_two_batches(state: State) -> None:
    state["position"]["batch"] = 0.5


def begin_before_the_first_epoch(state: State) -> None:
    state["position"]["epoch"] = -1


def begin_beyond_any_epoch(state: State) -> None:
    state["position"]["epoch"] = 2**62


def add_a_coordinate_to_the_position(state: State) -> None:
    state["position"]["line"] = 1


def add_weights_of_another_shape(state: State) -> None:
    state["raw_weights"] = [torch.zeros(2)]


def add_an_output_of_another_shape(state: State) -> None:
    state["raw_output"] = [torch.zeros(2), torch.zeros(2)]


@pytest.fixture(
    params=[
        None,
        drop_a_row_of_a_moment,
        make_a_moment_a_number,
        repeat_a_number_as_a_moment,
        make_a_moment_sparse,
        forget_a_moment,
        forget_the_steps_of_the_optimiser,
        let_the_optimiser_go_back,
        forget_random_states,
        forget_random_states_of_gpus,
        add_moments_of_no_weight,
        forget_the_step,
        write_the_step_as_a_word,
        forget_when_the_last_validation_was,
        go_back_before_the_first_update,
        let_no_time_have_passed,
        write_the_loss_as_a_word,
        write_the_position_as_a_number,
        begin_between_two_batches,
        begin_before_the_first_epoch,
        begin_beyond_any_epoch,
        add_a_coordinate_to_the_position,
        add_weights_of_another_shape,
        add_an_output_of_another_shape,
    ],
    ids=lambda change: "no state" if change is None else change.__name__,
)
def damaged(request: pytest.FixtureRequest, run: Path) -> Path:
    """A run whose last checkpoint is damaged.

    All damages but the first have a valid checksum. There is no `best.json`, so that the run keeps
    no checkpoint but its newest.
    """
    if request.param is None:
        (run / "step_6" / STATE).write_bytes(b"damaged")
    else:
        change_state(run / "step_6", request.param)
    (run / "best.json").unlink()
    return run


# From step 4 to step 5, with one checkpoint kept.
ONE_UPDATE = ("-train_steps", 5, "-save_checkpoint_steps", 1, "-keep_checkpoint", 1)


def test_a_run_continues_from_the_checkpoint_before_a_damaged_one(
    arguments: list[str], damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It warns once, and the checkpoint that it writes then is not deleted as an older one."""
    capsys.readouterr()
    assert train_again(arguments, "-train_from", damaged, *ONE_UPDATE) == 0
    printed = capsys.readouterr().err
    assert f"continuing from {damaged}/step_4\n" in printed
    assert printed.count("warning: ") == printed.count("; trying the checkpoint before\n") == 1
    load(damaged / "step_5")


def test_a_damaged_checkpoint_that_is_named_is_refused(arguments: list[str], damaged: Path) -> None:
    with pytest.raises(CheckpointError, match=r"/step_6\b.*: "):
        train_again(arguments, "-train_from", damaged / "step_6", *ONE_UPDATE)
