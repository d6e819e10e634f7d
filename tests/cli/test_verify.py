"""`onmt-entmax verify`: which file is wrong, missing or not listed."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from onmt_entmax.cli.verify import main
from onmt_entmax.model import build_model
from onmt_entmax.train.kept_checkpoints import remember_best
from onmt_entmax.train.run_folder import RunFolder
from tests.in_process import exit_status, success
from tests.models import BRNN, VOCABULARIES


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three checkpoints, of which the second is the best."""
    folder = RunFolder(tmp_path / "run", BRNN, VOCABULARIES, {})
    for step in (1, 2, 3):
        torch.manual_seed(step)
        folder.save(step, build_model(BRNN, VOCABULARIES), {"step": step})
    remember_best(folder.path, 2, "loss", 0.5)
    return folder.path


def flip_a_bit(path: Path) -> None:
    """Flip a bit a third into a file; a file of weights has numbers there."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0b100
    path.write_bytes(content)


def name_a_step_without_checkpoint(best: Path) -> None:
    """Record step 7 as the best one, which the run lacks."""
    remember_best(best.parent, 7, "loss", 0.5)


def cut_json(path: Path) -> None:
    path.write_text("{")


# --- folders ---


def test_whole_folders_are_as_written(run: Path) -> None:
    printed = success(main, [run, run / "step_1"])
    assert printed == f"{run}: 3 checkpoints as written\n{run}/step_1: all files as written\n"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A folder without a model."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_folders_without_a_model_are_an_error_of_one_line(
    empty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    assert exit_status(main, [str(empty), str(gone)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"verify.py: error: {empty}: not a model folder")
    assert f"; {gone}: " in line


def test_folders_after_one_without_a_model_are_checked(
    run: Path, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(main, [str(empty), str(run)]) == 2
    assert capsys.readouterr().out == f"{run}: 3 checkpoints as written\n"


def test_damage_after_a_folder_without_a_model_is_named(
    run: Path, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip_a_bit(run / "step_1" / "vocab.json")
    assert exit_status(main, [str(empty), str(run)]) == 2
    damage, error = capsys.readouterr().err.splitlines()
    assert damage.startswith(f"{run / 'step_1' / 'vocab.json'}: ")
    assert error.startswith(f"verify.py: error: {empty}: ")


# --- damaged files ---


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param("step_1/config.yaml", flip_a_bit, id="flip in the configuration"),
        pytest.param("step_2/vocab.json", flip_a_bit, id="flip in the vocabularies"),
        pytest.param("step_3/model.safetensors", flip_a_bit, id="flip in the weights"),
        pytest.param("step_2/training/state.pt", flip_a_bit, id="flip in the trainer's state"),
        pytest.param("step_1/SHA256SUMS", Path.unlink, id="no list"),
        pytest.param("step_3/vocab.json", Path.unlink, id="missing file"),
        pytest.param("step_3/notes.txt", Path.touch, id="unlisted file"),
        pytest.param("best.json", name_a_step_without_checkpoint, id="best without checkpoint"),
        pytest.param("best.json", cut_json, id="best cut"),
    ],
)
def test_a_wrong_file_is_named(
    run: Path, name: str, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(run / name)
    assert exit_status(main, [str(run)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{run / name}: ")


def test_a_flip_in_the_list_of_checksums_is_noticed(run: Path) -> None:
    """It may change a checksum or a name."""
    path = run / "step_2" / "SHA256SUMS"
    content = path.read_bytes()
    for position in range(0, 8 * len(content), 37):  # odd, so that each bit of a byte is met
        flipped = bytearray(content)
        flipped[position // 8] ^= 1 << position % 8
        path.write_bytes(flipped)
        assert exit_status(main, [str(run)]) == 1, position
