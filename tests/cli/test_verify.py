"""`onmt-entmax verify`: which file is wrong, missing or not listed; accepting a change by hand."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import (
    CheckpointError,
    best_step,
    find_model,
    load,
    remember_best,
)
from onmt_entmax.cli.verify import main
from onmt_entmax.model import build_model
from onmt_entmax.train.run_folder import RunFolder
from tests.test_model import SMALL, VOCABULARIES

FILES = ["config.yaml", "vocab.json", "model.safetensors", "training/state.pt", "SHA256SUMS"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three checkpoints, of which the second is the best."""
    folder = RunFolder(tmp_path / "run", SMALL, VOCABULARIES, {})
    for step in (1, 2, 3):
        torch.manual_seed(step)
        folder.save(step, build_model(SMALL, VOCABULARIES), {"step": step})
    remember_best(folder.path, 2, "loss", 0.5)
    return folder.path


def ended(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def flip(path: Path, generator: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    path.write_bytes(content)


def test_whole_folders(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(run, run / "step_1") == 0
    printed = capsys.readouterr()
    assert printed.out == f"{run}: 3 checkpoints as written\n{run}/step_1: all files as written\n"
    assert printed.err == ""


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_named(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    generator = random.Random(name)
    for step in (1, 2, 3):
        flip(run / f"step_{step}" / name, generator)
    assert ended(run) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        f"{run}/step_{step}/{name}" for step in (1, 2, 3)
    ]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "step_2" / name).unlink()
    assert ended(run) == 1
    assert f"{run}/step_2/{name}: is missing" in capsys.readouterr().err


def test_what_was_added_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "step_2" / "notes.txt").touch()
    (run / "step_3" / "training" / "link").symlink_to("/dev/zero")
    assert ended(run) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        f"{run}/step_2/notes.txt",
        f"{run}/step_3/training/link",
    ]


def test_a_listed_file_that_became_a_pipe(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "step_2" / "vocab.json"
    path.unlink()
    path.symlink_to("/dev/zero")
    assert ended(run) == 1
    assert capsys.readouterr().err == f"{path}: is not a regular file\n"


def test_the_name_of_the_best(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remember_best(run, 7, "loss", 0.5)
    assert ended(run) == 1
    assert capsys.readouterr().err.endswith("names step 7, of which there is no checkpoint\n")
    path = run / "best.json"
    path.write_text(path.read_text().replace('"step": 7', '"step": 1'))
    assert ended(run) == 1
    assert f"{path}: damaged" in capsys.readouterr().err
    assert ended("--accept", run) == 0
    assert ended(run) == 0
    assert best_step(run) == 1


def test_a_change_by_hand_is_accepted(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run / "step_2"
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("generator_alpha: 1.0", "generator_alpha: 1.75"))
    with pytest.raises(CheckpointError, match=f"onmt-entmax verify --accept {folder}$"):
        load(folder)
    assert ended("--accept", folder) == 0
    assert capsys.readouterr().out == f"{folder}: accepted\n"
    assert load(folder).config.generator_alpha == 1.75
    assert ended(run) == 0


@pytest.mark.parametrize("name", FILES[:-1])
def test_what_does_not_load_is_not_accepted(run: Path, name: str) -> None:
    folder = run / "step_2"
    before = (folder / "SHA256SUMS").read_bytes()
    (folder / name).write_bytes(b"\0")
    with pytest.raises(CheckpointError, match=name):
        ended("--accept", folder)
    assert (folder / "SHA256SUMS").read_bytes() == before


def test_a_folder_of_format_1_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(__file__).parents[1] / "data" / "model_1.0"
    folder = shutil.copytree(source, tmp_path / "model")
    with pytest.warns(UserWarning, match="format 1.0, which has no checksums"):
        assert ended(folder) == 0
    assert capsys.readouterr().out == ""
    assert ended("--accept", folder) == 0
    assert ended(folder) == 0
    flip(folder / "model.safetensors", random.Random(1))
    assert ended(folder) == 1


def test_a_folder_without_models(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a model folder"):
        ended(tmp_path)
    assert not list(tmp_path.iterdir())


def test_best_is_used_only_if_whole(run: Path) -> None:
    assert find_model(run).name == "step_2"
    flip(run / "best.json", random.Random(2))
    with pytest.raises(CheckpointError, match=r"best\.json: damaged"):
        find_model(run)
