"""The comparison with peers, on peers that are small programs."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.in_process import exit_status
from tools.bench import peers
from tools.bench.limited_run import run
from tools.bench.peer_measures import exact_match
from tools.bench.peer_systems.eole import Eole
from tools.bench.peer_systems.system import Command, Data, PeerError, System, last_number
from tools.bench.peer_systems.yoyodyne import Yoyodyne, divided

if sys.platform != "linux":
    pytest.skip("processor times are read from /proc", allow_module_level=True)

TRAIN = "walk\tV;PST\twalked\nsing\tV;PST\tsang\n"
DEV = "dream\tV;PST\tdreamt\ndream\tV;PST\tdreamed\nplay\tV;PST\tplayed\n"
ANSWERS = {"d r e a m": "d r e a m e d", "p l a y": "p l a y <unk> d"}


class Fake(System):
    """A peer that trains for no time, and predicts `ANSWERS`."""

    name = "fake"
    distribution = "torch"
    settings = "no settings"
    batch = 10
    training = "print('Step 3 of 4'); print('Step 1,200, weights: 70')"

    def prepare(self):
        return []

    def train(self):
        return Command([sys.executable, "-c", self.training])

    def updates(self):
        return last_number(r"Step ([\d,]+)", self.log)

    def parameters(self):
        return last_number(r"weights: (\d+)", self.log)

    def decode(self, source, output):
        code = f"for line in open(0): print({ANSWERS!r}[line[line.index('PST') + 4:].strip()])"
        return Command([sys.executable, "-c", code], stdin=source, stdout=output)


class Failing(Fake):
    """A peer whose training fails."""

    name = "failing"
    training = "raise ValueError('no such option: epochs')"


class Missing(Fake):
    """A peer that is not installed."""

    name = "missing"
    environment = "nowhere"
    install = "missing==1.0"


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run the benchmark with these systems; return what it prints, and the figures."""
    (tmp_path / "a.trn").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "a.dev").write_text(DEV, encoding="utf-8")

    def run(*systems, status=0, more=()):
        monkeypatch.setattr(peers, "SYSTEMS", systems)
        words = ["--train", tmp_path / "a.trn", "--dev", tmp_path / "a.dev", "--out"]
        words += [tmp_path / "out", "--peers", tmp_path, "--json", tmp_path / "figures.json", *more]
        assert exit_status(peers.main, [str(word) for word in words]) == status
        printed = capsys.readouterr()
        path = tmp_path / "figures.json"
        figures = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return printed.out + printed.err, figures

    return run


def test_a_system_has_a_line_and_others_a_reason(compare):
    printed, figures = compare(Fake, Failing, Missing)
    (line,) = (line for line in printed.splitlines() if line.startswith("fake "))
    assert line.split()[2:4] == ["70", "1,200"]
    (result,) = figures["results"]
    # Two sources: one of two gold forms is predicted, and a form with an unknown symbol.
    assert result["exact_match"] == 50
    assert result["updates"] == 1200
    expected = 1200 * 10 / result["training"]["processor"]
    assert result["examples_per_second"] == pytest.approx(expected)
    assert "fake: no settings" in printed
    assert "ValueError: no such option: epochs" in figures["skipped"]["failing"]
    assert "pip install missing==1.0" in figures["skipped"]["missing"]
    assert "\n" not in figures["skipped"]["failing"]
    assert "missing: not installed" in printed


def test_an_unknown_symbol_is_wrong_even_in_a_reference():
    assert exact_match(["a", "b"], ["x y", "<unk>"], ["x y", "<unk>"]) == 50


def test_equal_sources_count_once():
    sources, references = ["a", "a", "b"], ["x", "y", "z"]
    assert exact_match(sources, references, ["y", "y", "w"]) == 50


def test_missing_predictions_are_refused():
    with pytest.raises(PeerError, match="1 predictions for 2 sources"):
        exact_match(["a", "b"], ["x", "y"], ["x"])


def test_the_cores_are_free_again(monkeypatch: pytest.MonkeyPatch):
    chosen = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: chosen.append(cores))
    with peers.on_one_core(None):
        assert chosen == [{3}]
    assert chosen[1:] == [{3, 5}]


def test_a_core_that_there_is_not_is_refused(compare):
    printed, _ = compare(Fake, status=2, more=["--core", "4000"])
    assert "--core 4000: not allowed here" in printed


BUSY = "import time\nwhile time.process_time() < 5: pass"


def test_a_command_is_stopped_after_its_processor_time(tmp_path: Path):
    # The time of a child counts too, and the child ends with its parent.
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    used = run(Command([sys.executable, "-c", child]), tmp_path / "log", seconds=0.3)
    assert used.stopped
    assert used.processor >= 0.3
    assert used.status == -signal.SIGTERM


def test_a_sleeping_command_uses_no_time(tmp_path: Path):
    code = "import time; time.sleep(1)"
    used = run(Command([sys.executable, "-c", code]), tmp_path / "log", seconds=0.9)
    assert not used.stopped
    assert used.processor < 0.9 < used.wall


def test_marks_are_apart_from_units():
    assert divided("lang=deu +N +ACC(PL) + a") == (["lang=deu", "+N", "+ACC(PL)"], ["+", "a"])


def test_yoyodyne_reads_tags_as_features(tmp_path: Path):
    data = Data(tmp_path / "data")
    data.folder.mkdir()
    for split in ("train", "dev"):
        data.path(split, "src").write_text('+V +PST " a\n+V d\n', encoding="utf-8")
        data.path(split, "tgt").write_text("a e d\nd e d\n", encoding="utf-8")
    data.write_samples()
    folder = tmp_path / "yoyodyne"
    folder.mkdir()
    Yoyodyne(data, folder, tmp_path, 1).prepare()
    table = (folder / "train.tsv").read_text(encoding="utf-8")
    assert table == '""" a"\ta e d\t+V +PST\nd\td e d\t+V\n'
    assert json.loads((folder / "config.yaml").read_text())["data"]["features_col"] == 3


def test_yoyodyne_takes_the_best_checkpoint(tmp_path: Path):
    (tmp_path / "yoyodyne" / "bin").mkdir(parents=True)
    (tmp_path / "yoyodyne" / "bin" / "python").touch()
    for split, text in (("train", "+V a\n"), ("dev", "+V a\n")):
        (tmp_path / f"{split}.src").write_text(text, encoding="utf-8")
    system = Yoyodyne(Data(tmp_path), tmp_path, tmp_path, 1)
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in ("step=20-val_accuracy=0.1250", "step=100-val_accuracy=0.0950"):
        (folder / f"{name}.ckpt").touch()
    command = system.decode(tmp_path / "dev.src", tmp_path / "dev.predicted")
    assert command.words[-1] == str(folder / "step=20-val_accuracy=0.1250.ckpt")


def test_eole_takes_the_best_checkpoint_that_is_there(tmp_path: Path):
    system = Eole(Data(tmp_path), tmp_path, None, 1)
    lines = [f"INFO] Validation accuracy: {value}" for value in (41.5, 97.25, 60)]
    (tmp_path / "train.log").write_text("\n".join(lines), encoding="utf-8")
    steps = [tmp_path / "model" / f"step_{number * system.every}" for number in (1, 2, 3)]
    for step in steps:
        step.mkdir(parents=True)
        (step / "config.json").touch()
    assert system._best() == steps[1]
    (steps[1] / "config.json").unlink()  # the training was ended before it was written
    assert system._best() == steps[2]


def test_an_existing_folder_is_kept(compare, tmp_path: Path):
    (tmp_path / "out").mkdir()
    printed, _ = compare(Fake, status=2)
    assert "exists; name a new folder" in printed
