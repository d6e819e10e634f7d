"""`onmt-entmax verify`: which file is wrong, missing or not listed."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import CheckpointError, RunFolder, remember_best
from onmt_entmax.cli.verify import main
from onmt_entmax.model import build_model
from tests.models import SMALL, VOCABULARIES


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


def test_whole_folders(run: Path, capsys) -> None:
    assert ended(run, run / "step_1") == 0
    printed = capsys.readouterr()
    assert printed.out == f"{run}: 3 checkpoints as written\n{run}/step_1: all files as written\n"
    assert printed.err == ""
    with pytest.raises(CheckpointError, match="not a model folder"):
        ended(run.parent)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


CHANGES: dict[str, Callable[[Path], object]] = {
    **{
        f"step_{n}/{name}": lambda run, file=f"step_{n}/{name}": flip(run / file)
        for n, name in enumerate(
            ("config.yaml", "vocab.json", "model.safetensors"), 1
        )
    },
    "step_2/training/state.pt": lambda run: flip(run / "step_2/training/state.pt"),
    "step_1/SHA256SUMS": lambda run: (run / "step_1/SHA256SUMS").unlink(),
    "step_3/vocab.json": lambda run: (run / "step_3/vocab.json").unlink(),
    "step_3/notes.txt": lambda run: (run / "step_3/notes.txt").touch(),
    "best.json": lambda run: remember_best(run, 7, "loss", 0.5),
    "best.json:": lambda run: (run / "best.json").write_text("{"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_is_named(run: Path, name: str, capsys) -> None:
    CHANGES[name](run)
    assert ended(run) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{run / name.rstrip(':')}: ")


def test_a_flip_in_the_list_is_noticed(run: Path) -> None:
    """Whether it changes a checksum or a name."""
    path = run / "step_2" / "SHA256SUMS"
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 37):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert ended(run) == 1, bit
