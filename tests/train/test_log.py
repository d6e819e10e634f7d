"""The record of a run, `metrics.jsonl`: its rows, and what a resumed run keeps of them."""

from contextlib import closing
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.config import OptimizerConfig, TrainingConfig
from onmt_entmax.files import FileError
from onmt_entmax.train import log
from onmt_entmax.train.log import Log
from onmt_entmax.train.progress import Progress
from tests.commands import json_lines
from tests.train.clocks import FakeClock, replace_clock

AT = Progress(step=250, epochs=1.96, seconds=30.0)
RATE = {"learning_rate": 0.001949, "epoch": 1}
MEASURES = {"loss": 0.0828, "token_accuracy": 94.46, "support": 2.038, "exact_match": 61.957}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of logs."""
    return replace_clock(monkeypatch, now=100.0)


def open_log(folder: Path, first: int = 0) -> Log:
    """Return the log of a training that starts from a step of the run in a folder."""
    config = TrainingConfig(OptimizerConfig(), train_steps=4000, selection="exact_match")
    return Log(folder, first=first, kept=first, config=config, alpha=1.5, tensorboard=None)


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the record in a folder."""
    return json_lines(folder / "metrics.jsonl")


# --- rows ------------------------------------------------------------------------------------


def write_training(folder: Path, clock: FakeClock, **measures: Any) -> None:
    """Log the averages of two updates: in 75 seconds, of which 10 were a validation.

    Updates 51 to 250 take these 75 seconds, too, so the 3,750 that are left will take 23:26.
    """
    with closing(open_log(folder)) as writer:
        writer.advance(Progress(50, 0.2, 3.0))
        writer.add(loss=60.0, tokens=400, correct=350, support=1500)
        writer.add(loss=27.126, tokens=200, correct=192.8, support=700.2)
        writer.waited(1.3)
        clock.now += 75
        writer.paused(10)
        writer.training(AT, **RATE, **measures)


def write_validation(folder: Path, best_step: int = AT.step) -> None:
    """Log a validation."""
    with closing(open_log(folder)) as writer:
        writer.validation(AT, MEASURES, best_step)


def test_a_training_row_has_averages_over_tokens_and_speed_without_validations(
    tmp_path: Path, clock: FakeClock
) -> None:
    write_training(tmp_path, clock)
    assert rows(tmp_path) == [
        {
            "kind": "train",
            "step": 250,
            **RATE,
            "loss": (60.0 + 27.126) / 600,
            "token_accuracy": 100 * (350 + 192.8) / 600,
            "support": (1500 + 700.2) / 600,
            "tokens_per_second": 600 / 65,
            "input_percent": 100 * 1.3 / 65,
        }
    ]


def test_a_training_row_has_skipped_updates_and_gpu_memory(
    tmp_path: Path, clock: FakeClock
) -> None:
    write_training(tmp_path, clock, skipped=2, gpu_gb=2.6437)
    (row,) = rows(tmp_path)
    assert (row["skipped"], row["gpu_gb"]) == (2, 2.6437)


def test_averages_begin_anew_with_each_row(tmp_path: Path, clock: FakeClock) -> None:
    with closing(open_log(tmp_path)) as writer:
        for loss in (60.0, 20.0):
            writer.add(loss=loss, tokens=10, correct=5, support=20)
            clock.now += 1
            writer.training(AT, **RATE)
    assert [row["loss"] for row in rows(tmp_path)] == [6.0, 2.0]


def test_a_validation_row_has_the_measures(tmp_path: Path) -> None:
    write_validation(tmp_path)
    assert rows(tmp_path) == [{"kind": "valid", "step": 250, **MEASURES}]


def test_a_row_that_the_system_writes_in_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ShortWrites(FileIO):
        def write(self, data: Any) -> int:
            return super().write(data[:7])

    monkeypatch.setattr(log, "FileIO", ShortWrites)
    write_validation(tmp_path)
    assert rows(tmp_path) == [{"kind": "valid", "step": 250, **MEASURES}]


# --- what is printed -------------------------------------------------------------------------


def test_a_training_row_is_also_printed(
    tmp_path: Path, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """`test_progress_lines.py` has the form of the line."""
    write_training(tmp_path, clock)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "  epoch 2     step  250/4000    23:26 left  loss 0.1452  token accuracy  90.5 %  "
        "support    3.7  lr 0.00195         9 tokens/s"
    )


def test_a_validation_row_is_also_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_validation(tmp_path, best_step=200)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "  validation  step  250/4000  loss 0.0828  token accuracy  94.5 %  support    2.0  "
        "exact match 61.96 %  best was step 200"
    )


# --- folders that cannot be made ---------------------------------------------------------------


def test_a_folder_of_tensorboard_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    config = TrainingConfig(OptimizerConfig())
    below = str(tmp_path / "file" / "board")
    with pytest.raises(FileError, match=r"file/board: cannot be written \(Not a directory\)"):
        Log(tmp_path, first=0, kept=0, config=config, alpha=1.5, tensorboard=below)


# --- metrics.jsonl of a resumed run ------------------------------------------------------------


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """The folder of a run with validations of steps 10 and 20."""
    with closing(open_log(tmp_path)) as writer:
        for step in (10, 20):
            writer.validation(Progress(step, 0.1, 1.0), MEASURES, step)
    return tmp_path


def steps(folder: Path) -> list[int]:
    """Return the step of each row."""
    return [row["step"] for row in rows(folder)]


def test_later_lines_are_dropped_before_the_first_new_one(history: Path) -> None:
    """A kill in between keeps the lines up to the step of resuming."""
    with closing(open_log(history, first=10)):
        assert steps(history) == [10]


def test_new_lines_follow_those_up_to_the_step_of_resuming(history: Path) -> None:
    with closing(open_log(history, first=10)) as writer:
        writer.validation(Progress(15, 0.1, 1.0), MEASURES, 15)
    assert steps(history) == [10, 15]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"\0\0}\n", id="zeros, as a crash of the system leaves them"),
        pytest.param(b"\xff}\n", id="not UTF-8"),
        pytest.param(b"[1]}\n", id="not an object"),
        pytest.param(b'{"step": null}\n', id="a step that is not a number"),
        pytest.param(b'{"step": ' + b"[" * 10**5 + b"}\n", id="lists too deep"),
        pytest.param(b'{"kind": "train", "st', id="the half that a kill leaves"),
    ],
)
def test_a_damaged_line_is_dropped(line: bytes, history: Path) -> None:
    with open(history / "metrics.jsonl", "ab") as file:
        file.write(line)
    open_log(history, first=20).close()
    assert steps(history) == [10, 20]


def test_a_run_from_the_beginning_drops_all_lines(history: Path) -> None:
    open_log(history).close()
    assert rows(history) == []
