"""Runs that continue with other options: what is refused, and which checkpoint is the best."""

import json
from pathlib import Path

import pytest
import yaml

from onmt_entmax.checkpoint import CheckpointError, best_step, checkpoint_steps
from tests.refusals import assert_short_line
from tests.train.runs import change_option, change_run_state, forget_option, train_again


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("-rnn_size", 16, "rnn_size 8, the configuration now says 16$"),
        ("-global_attention_function", "softmax", "global_attention_alpha 1.5, .* says 1.0$"),
        ("-freeze_encoder", "true", "freeze_encoder False, .* True; -reset_optim all"),
        ("-optim", "adagrad", "optim 'adam', .* 'adagrad'; -reset_optim all"),
        ("-adam_beta1", 0.8, "adam_beta1 0.9, .* 0.8; -reset_optim all"),
        ("-target_order", "right_to_left", "target_order 'left_to_right', .* 'right_to_left'"),
        ("-copy_frequency", 2, "copying .* False, the configuration now says True"),
        # The transform writes a token that the vocabulary lacks, which would be read as <unk>.
        ("-transforms", "tokenmask", "run: cannot continue: .* '<mask>'"),
    ],
)
def test_another_network_or_optimiser_is_refused_by_name(
    arguments: list[str], run: Path, option: str, value: object, message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        train_again(arguments, "-train_from", run, "-train_steps", 8, option, value)
    assert checkpoint_steps(run) == [2, 4, 6]


def test_an_optimiser_of_a_long_name_is_refused_in_a_short_line(
    arguments: list[str], run: Path
) -> None:
    """A stranger's checkpoint may record anything."""
    change_option(run / "step_6", "optim", "x" * 5000)
    with pytest.raises(CheckpointError) as raised:
        train_again(arguments, "-train_from", run, "-train_steps", 8)
    assert_short_line(raised.value, "cannot continue: it was trained with optim 'xxx")


# --- the best checkpoint after a change ------------------------------------------------------

# A value of `selection` better than any that a later checkpoint of the run can have.
UNREACHED = {"best": 1e9, "best_planned": 1e9, "waited": 5}
ACCURACY = ("-selection", "token_accuracy", "-keep_checkpoint", 1)
FEWER_PAIRS = ("-valid_loss_size", 2)


def test_the_best_of_another_folder_does_not_count(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    """Without learning, no checkpoint here is better than step 2, from which the run continues."""
    other = tmp_path / "other"
    worse = ["-train_steps", 8, "-learning_rate", 1e-9, "-dropout", 0.9]
    assert train_again(arguments, "-train_from", run / "step_2", "-save_model", other, *worse) == 0
    assert checkpoint_steps(other) == [4, 6, 8]
    assert best_step(other) in checkpoint_steps(other)


def test_the_best_by_another_measure_does_not_count(arguments: list[str], run: Path) -> None:
    change_run_state(run / "step_6", **UNREACHED)
    assert train_again(arguments, "-train_from", run, *ACCURACY, "-train_steps", 8) == 0
    assert best_step(run) == 8
    assert checkpoint_steps(run) == [8]


@pytest.fixture
def accurate(arguments: list[str], run: Path) -> Path:
    """The run, with a best checkpoint by accuracy that cannot be reached: step 8."""
    assert train_again(arguments, "-train_from", run, *ACCURACY, "-train_steps", 8) == 0
    change_run_state(run / "step_8", **UNREACHED)
    return run


def test_the_best_of_a_larger_development_set_does_not_count(
    arguments: list[str], accurate: Path
) -> None:
    more = ["-train_from", accurate, *ACCURACY, *FEWER_PAIRS, "-train_steps", 10]
    assert train_again(arguments, *more) == 0
    assert best_step(accurate) == 10
    assert checkpoint_steps(accurate) == [10]


def test_the_best_of_another_development_set_does_not_count(
    arguments: list[str], accurate: Path
) -> None:
    corpora = yaml.safe_load(Path(arguments[1]).read_text())["data"]
    corpora["valid"] = corpora["corpus_1"]
    more = ["-train_from", accurate, *ACCURACY, "-data", json.dumps(corpora)]
    assert train_again(arguments, *more, "-train_steps", 10) == 0
    assert best_step(accurate) == 10


def test_the_best_of_an_older_version_that_lacked_an_option_counts(
    arguments: list[str], accurate: Path
) -> None:
    forget_option(accurate / "step_8", "calibrate")
    more = ["-train_from", accurate, *ACCURACY, "-train_steps", 10]
    assert train_again(arguments, *more) == 0
    assert best_step(accurate) == 8


@pytest.mark.parametrize("data", ["a word", ["a list"]], ids=str)
def test_the_best_of_unknown_data_does_not_count(
    arguments: list[str], accurate: Path, data: object
) -> None:
    """A stranger's checkpoint may record anything."""
    change_option(accurate / "step_8", "data", data)
    more = ["-train_from", accurate, *ACCURACY, "-train_steps", 10]
    assert train_again(arguments, *more) == 0
    assert best_step(accurate) == 10


def test_the_best_counts_if_nothing_changed(arguments: list[str], accurate: Path) -> None:
    more = ["-train_from", accurate, *ACCURACY, "-train_steps", 10]
    assert train_again(arguments, *more) == 0
    assert best_step(accurate) == 8
    assert checkpoint_steps(accurate) == [8, 10]
