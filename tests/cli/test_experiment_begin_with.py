"""Cells of a matrix that begin with the weights of another, by `onmt-entmax experiment`."""

import shutil
import time
from pathlib import Path

import pytest
import yaml

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli import experiment
from onmt_entmax.experiment.runner import ExperimentError, Processes, Runner
from onmt_entmax.locks import locked
from tests.ended import ended
from tests.matrices import command, read


@pytest.fixture
def path(copied: Path) -> Path:
    content = yaml.safe_load(copied.read_text())
    options = {**content["cells"]["one"], "begin_with": "one", "train_steps": 2}
    content |= {"cells": {**content["cells"], "two": options}, "ensemble": False}
    path = copied.with_name("two.yaml")
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def test_it_takes_the_weights_of_the_same_seed_and_then_goes_on_by_itself(path):
    done = command("run", path, "--jobs", "2", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    one, two = read(path).trainings()[:2]
    assert f"continuing from {one.run / 'step_4'}" in (two.folder / "log.txt").read_text()
    assert checkpoint_steps(two.run) == [2]
    (two.folder / "figures.json").unlink()
    done = command("run", path, "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert f"continuing from {two.run / 'step_2'}" in (two.folder / "log.txt").read_text()
    assert checkpoint_steps(two.run) == [2]
    shutil.copy(two.run / "step_2" / "model.safetensors", one.run / "step_4")
    done = command("run", path, "--seeds", "1")
    assert done.returncode == 2
    assert f"{two.folder}: was trained with another {one.run} than is there now" in done.stderr


def test_those_that_wait_come_last(path):
    content = yaml.safe_load(path.read_text())
    one = content["cells"]["one"]
    cells = {"one": one, "two": {**one, "begin_with": "one"}}
    cells |= {"three": {**one, "begin_with": "two"}, "four": one}
    path.write_text(yaml.safe_dump(content | {"cells": cells, "seeds": [1]}, sort_keys=False))
    matrix = read(path)
    found = Runner(matrix, matrix.trainings(), 2, []).trainings
    assert [training.cell.name for training in found] == ["one", "four", "two", "three"]


def test_another_process_may_be_at_what_it_begins_with(path, monkeypatch, capfd):
    """Those that begin with one of those that wait do so too."""
    content = yaml.safe_load(path.read_text())
    cells = content["cells"]
    cells |= {"three": {**cells["one"], "begin_with": "two"}}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    figures = path.parent / "runs" / "one" / "seed-1" / "figures.json"
    figures.unlink()
    monkeypatch.setattr(Processes, "run", lambda *_: pytest.fail("nothing can begin"))
    with locked(figures.parent):
        assert ended(experiment.main, ["run", str(path), "--seeds", "1", "--jobs", "2"]) == 1
    said = capfd.readouterr().err
    assert f"one seed 1: left to another process: {figures.parent}: process " in said
    for name in ("two", "three"):
        assert f"{name} seed 1: waits for one seed 1: another process works on it" in said


def test_it_waits_for_the_other(path, monkeypatch, capfd):
    (path.parent / "runs" / "one" / "seed-1" / "figures.json").unlink()
    commands = []

    def run(self: Processes, words: list[str], *_: object) -> None:
        time.sleep(0.3)
        commands.append(words)
        if words[0] == "train" and "one" in Path(words[2]).parts:
            raise ExperimentError("no memory")

    monkeypatch.setattr(Processes, "run", run)
    assert ended(experiment.main, ["run", str(path), "--jobs", "2", "--seeds", "1"]) == 1
    said = capfd.readouterr().err
    assert "one seed 1: failed: no memory" in said
    assert "two seed 1: failed: begins with one seed 1, which is not done" in said
    assert len(commands) == 1
