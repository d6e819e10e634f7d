"""yoyodyne in the comparison with peers: the files that it reads, and the checkpoint that it takes.

It need not be installed: the tests read the files that are written for it, and its commands.
"""

import json
from pathlib import Path

import pytest

from tools.bench.peer_systems.data import Data
from tools.bench.peer_systems.yoyodyne import Yoyodyne, marks_and_units


def write_data(folder: Path, source: str, target: str) -> Data:
    """Write the same pairs as training and development set."""
    data = Data(folder)
    folder.mkdir()
    for split in ("train", "dev"):
        data.path(split, "src").write_text(source, encoding="utf-8")
        data.path(split, "tgt").write_text(target, encoding="utf-8")
    data.write_samples()
    return data


def test_marks_are_divided_from_units() -> None:
    marks, units = marks_and_units("lang=deu +N +ACC(PL) + a")
    assert marks == ["lang=deu", "+N", "+ACC(PL)"]
    assert units == ["+", "a"]


@pytest.fixture
def yoyodyne(tmp_path: Path) -> Yoyodyne:
    """The system in a folder of its own; its environment has a Python."""
    peers, folder = tmp_path / "peers", tmp_path / "yoyodyne"
    (peers / "yoyodyne" / "bin").mkdir(parents=True)
    (peers / "yoyodyne" / "bin" / "python").touch()
    folder.mkdir()
    data = write_data(tmp_path / "data", '+V +PST " a\n+V d\n', "a e d\nd e d\n")
    return Yoyodyne(data, folder, peers, minutes=1)


def test_yoyodyne_reads_units_and_tags_in_columns(yoyodyne: Yoyodyne) -> None:
    yoyodyne.prepare()
    table = (yoyodyne.folder / "train.tsv").read_text(encoding="utf-8")
    assert table == '""" a"\ta e d\t+V +PST\nd\td e d\t+V\n'


def test_yoyodyne_reads_tags_as_features(yoyodyne: Yoyodyne) -> None:
    yoyodyne.prepare()
    configuration = json.loads((yoyodyne.folder / "config.yaml").read_text())
    assert configuration["data"]["features_col"] == 3


def test_yoyodyne_takes_the_best_checkpoint(yoyodyne: Yoyodyne) -> None:
    checkpoints = yoyodyne.folder / "checkpoints"
    checkpoints.mkdir()
    best, last = "step=20-val_accuracy=0.1250.ckpt", "step=100-val_accuracy=0.0950.ckpt"
    for name in (best, last):
        (checkpoints / name).touch()
    source = yoyodyne.data.path("dev", "src")
    command = yoyodyne.decode(source, yoyodyne.folder / "dev.predicted")
    assert command.words[-1] == str(checkpoints / best)
