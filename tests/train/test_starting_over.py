"""`-overwrite`: a run starts anew, or goes back to an earlier checkpoint."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from torch import Tensor

from onmt_entmax.checkpoint import CheckpointError, best_step, checkpoint_steps
from onmt_entmax.errors import UserError
from tests.commands import json_lines, weights
from tests.train.runs import train_again

BACK = ("-train_steps", 4, "-learning_rate", 0.1)


def test_going_back_needs_overwrite(arguments: list[str], run: Path) -> None:
    with pytest.raises(CheckpointError, match="later steps, up to 6; delete them with -overwrite"):
        train_again(arguments, "-train_from", run / "step_2", *BACK)


@pytest.fixture(scope="module")
def shorter(six_updates: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, trained from step 2 to 4 once more with another learning rate."""
    run = tmp_path_factory.mktemp("shorter") / "run"
    shutil.copytree(six_updates / "run", run)
    arguments = ["-config", str(six_updates / "toy.yaml"), "-save_model", str(run)]
    assert train_again(arguments, "-train_from", run / "step_2", *BACK, "-overwrite") == 0
    return run


def test_going_back_deletes_later_checkpoints(shorter: Path) -> None:
    assert checkpoint_steps(shorter) == [2, 4]


def test_going_back_names_a_best_checkpoint_that_is_left(shorter: Path) -> None:
    assert best_step(shorter) in checkpoint_steps(shorter)


def test_going_back_writes_checkpoints_anew(shorter: Path, six_updates: Path) -> None:
    before, after = weights(six_updates / "run", 4), weights(shorter, 4)
    assert not all(after[name].equal(tensor) for name, tensor in before.items())


def test_going_back_removes_later_steps_from_the_log(shorter: Path) -> None:
    assert max(line["step"] for line in json_lines(shorter / "metrics.jsonl")) == 4


# --- from the beginning --------------------------------------------------------------------


@pytest.fixture
def vocabularies(tmp_path: Path) -> list[Path]:
    """Vocabulary files that are not there yet."""
    return [tmp_path / "vocab.src", tmp_path / "vocab.tgt"]


@pytest.fixture
def vocabulary_options(vocabularies: list[Path]) -> list[object]:
    return ["-src_vocab", vocabularies[0], "-tgt_vocab", vocabularies[1]]


def test_starting_anew_needs_overwrite(arguments: list[str]) -> None:
    with pytest.raises(CheckpointError, match=r"already holds checkpoints; .* -train_from"):
        train_again(arguments)


def test_a_configuration_file_does_not_start_anew(
    six_updates: Path, run: Path, tmp_path: Path
) -> None:
    """In files for OpenNMT-py, `overwrite` is about vocabularies: it must delete no checkpoints."""
    settings = yaml.safe_load((six_updates / "toy.yaml").read_text()) | {"overwrite": True}
    config = tmp_path / "overwrite.yaml"
    config.write_text(yaml.safe_dump(settings))
    with pytest.raises(CheckpointError, match="already holds checkpoints"):
        train_again(["-config", str(config), "-save_model", str(run)])


def test_a_refused_start_deletes_and_writes_nothing(
    arguments: list[str],
    run: Path,
    vocabularies: list[Path],
    vocabulary_options: list[object],
) -> None:
    no_pair = ["-transforms", "filtertoolong", "-src_seq_length", 1]
    with pytest.raises(UserError, match="no pair is left"):
        train_again(arguments, "-overwrite", *vocabulary_options, *no_pair)
    assert checkpoint_steps(run) == [2, 4, 6]
    assert not any(path.exists() for path in vocabularies)


def test_nothing_is_deleted_if_the_vocabulary_cannot_be_written(
    arguments: list[str], run: Path, six_updates: Path
) -> None:
    under_a_file = six_updates / "train.src" / "vocab"
    with pytest.raises(UserError, match="cannot be written"):
        train_again(arguments, "-overwrite", "-src_vocab", under_a_file)
    assert checkpoint_steps(run) == [2, 4, 6]


class Overwritten(NamedTuple):
    """The run of six updates, after it was trained once more with `-overwrite`."""

    printed: str
    weights_before: dict[str, Tensor]
    """Weights of its last checkpoint before that."""


@pytest.fixture
def overwritten(
    arguments: list[str],
    run: Path,
    vocabulary_options: list[object],
    capsys: pytest.CaptureFixture[str],
) -> Overwritten:
    before = weights(run, 6)
    capsys.readouterr()
    assert train_again(arguments, "-overwrite", *vocabulary_options) == 0
    return Overwritten(capsys.readouterr().err, before)


def test_overwriting_says_what_it_deletes(overwritten: Overwritten, run: Path) -> None:
    deleted = f"-overwrite: deletes from {run}: step_2, step_4, step_6\n"
    assert deleted in overwritten.printed


def test_vocabularies_that_were_not_there_are_written(
    overwritten: Overwritten, vocabularies: list[Path]
) -> None:
    assert f"note: {vocabularies[0]}: was not there; written" in overwritten.printed
    assert all(path.exists() for path in vocabularies)


def test_a_run_that_is_overwritten_has_the_same_weights(
    overwritten: Overwritten, run: Path
) -> None:
    """The data is read before the old run is deleted, which changes no random number."""
    for name, tensor in weights(run, 6).items():
        assert tensor.equal(overwritten.weights_before[name])
