"""The log of a run: its rows, the time left, and what a resumed run keeps."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.config import OptimizerConfig, TrainingConfig
from onmt_entmax.train import log
from onmt_entmax.train.log import Log
from onmt_entmax.train.progress import Progress
from tests.commands import json_lines
from tests.train.clocks import FakeClock, replace_clock

CONFIG = TrainingConfig(OptimizerConfig(), train_steps=4000, selection="exact_match")
RATE = {"learning_rate": 0.001949, "epoch": 1}
MEASURES = {"loss": 0.0828, "token_accuracy": 94.46, "support": 2.038, "exact_match": 61.957}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of logs."""
    return replace_clock(monkeypatch, now=100.0)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """Return the lines on stderr since the last call, without the time of day."""
    return lambda: [line.split("  ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def open_log(folder: Path, first: int = 0, config: TrainingConfig = CONFIG) -> Log:
    """Return the log of a training of an output with alpha 1.5, which starts from a step."""
    return Log(folder, first, config, alpha=1.5, tensorboard=None)


def rows(folder: Path) -> list[dict[str, Any]]:
    return json_lines(folder / "metrics.jsonl")


# --- records, and the lines that people see ---------------------------------------------------

AT = Progress(250, 1.96, 30.0)  # of 4,000 updates; after the first 50, the clock begins


def write_training(folder: Path, clock: FakeClock, **measures: Any) -> None:
    """Log the averages of two updates: in 75 seconds, of which 10 were a validation."""
    with closing(open_log(folder)) as writer:
        writer.advance(Progress(50, 0.2, 3.0))
        writer.add(loss=60.0, tokens=400, correct=350, support=1500)
        writer.add(loss=27.126, tokens=200, correct=192.8, support=700.2)
        writer.waited(1.3)
        clock.now += 75
        writer.paused(10)
        writer.training(AT, **RATE, **measures)


def write_validation(folder: Path, best_step: int = AT.step, **measures: float) -> None:
    with closing(open_log(folder)) as writer:
        writer.validation(AT, {**MEASURES, **measures}, best_step)


def test_a_training_record_has_averages_over_tokens_and_speed_without_validations(
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


def test_skipped_updates_and_gpu_memory_are_recorded(tmp_path: Path, clock: FakeClock) -> None:
    write_training(tmp_path, clock, skipped=2, gpu_gb=2.6437)
    (row,) = rows(tmp_path)
    assert (row["skipped"], row["gpu_gb"]) == (2, 2.6437)


def test_training_is_printed_as_a_line(
    tmp_path: Path, clock: FakeClock, printed: Callable[[], list[str]]
) -> None:
    """3,750 updates are left, and 200 took 75 seconds."""
    write_training(tmp_path, clock, skipped=2, gpu_gb=2.6437)
    assert printed() == [
        "epoch 2     step  250/4000    23:26 left  loss 0.1452  token accuracy  90.5 %  "
        "support    3.7  lr 0.00195         9 tokens/s  2 updates skipped  GPU memory 2.6 GB"
    ]


def test_a_validation_record_has_the_measures(tmp_path: Path) -> None:
    write_validation(tmp_path)
    assert rows(tmp_path) == [{"kind": "valid", "step": 250, **MEASURES}]


@pytest.mark.parametrize(("best_step", "text"), [(250, "best so far"), (200, "best was step 200")])
def test_a_validation_is_printed_as_a_line(
    best_step: int, text: str, tmp_path: Path, printed: Callable[[], list[str]]
) -> None:
    write_validation(tmp_path, best_step)
    assert printed() == [
        "validation  step  250/4000  loss 0.0828  token accuracy  94.5 %  support    2.0  "
        f"exact match 61.96 %  {text}"
    ]


def test_the_factor_of_a_calibration_is_printed(
    tmp_path: Path, printed: Callable[[], list[str]]
) -> None:
    write_validation(tmp_path, output_factor=0.468)
    assert "  output times 0.47  " in printed()[0]


def test_the_time_left_is_that_of_the_first_limit(
    tmp_path: Path, clock: FakeClock, printed: Callable[[], list[str]]
) -> None:
    """A limit of time needs no speed."""
    config = replace(CONFIG, max_seconds=100.0)
    with closing(open_log(tmp_path, config=config)) as writer:
        writer.validation(Progress(0, 0.0, 30.0), MEASURES, 0)
        writer.advance(Progress(0, 0.0, 30.0))
        clock.now += 10
        writer.validation(Progress(2000, 0.1, 40.0), MEASURES, 0)
    by_time, by_updates = printed()
    assert " 1:10 left " in by_time
    assert " 0:10 left " in by_updates


def test_a_line_that_the_system_writes_in_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ShortWrites(FileIO):
        def write(self, data: Any) -> int:
            return super().write(data[:7])

    monkeypatch.setattr(log, "FileIO", ShortWrites)
    write_validation(tmp_path)
    assert rows(tmp_path) == [{"kind": "valid", "step": 250, **MEASURES}]


# --- metrics.jsonl of a resumed run ------------------------------------------------------------

DAMAGED_LINES = {
    "zeros, as a crash of the system leaves them": b"\0\0}\n",
    "not UTF-8": b"\xff}\n",
    "not an object": b"[1]}\n",
    "a step that is no number": b'{"step": null}\n',
    "the half that a kill leaves": b'{"kind": "train", "st',
}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """The folder of a run with validations of steps 10 and 20."""
    with closing(open_log(tmp_path)) as writer:
        for step in (10, 20):
            writer.validation(Progress(step, 0.1, 1.0), MEASURES, step)
    return tmp_path


def steps(folder: Path) -> list[int]:
    return [row["step"] for row in rows(folder)]


def test_later_lines_are_dropped_before_the_first_new_one(history: Path) -> None:
    """A kill in between keeps the lines up to the step of resuming."""
    with closing(open_log(history, first=10)):
        assert steps(history) == [10]


def test_new_lines_follow_those_up_to_the_step_of_resuming(history: Path) -> None:
    with closing(open_log(history, first=10)) as writer:
        writer.validation(Progress(15, 0.1, 1.0), MEASURES, 15)
    assert steps(history) == [10, 15]


@pytest.mark.parametrize("line", DAMAGED_LINES.values(), ids=DAMAGED_LINES)
def test_a_damaged_line_is_dropped(line: bytes, history: Path) -> None:
    with open(history / "metrics.jsonl", "ab") as file:
        file.write(line)
    open_log(history, first=20).close()
    assert steps(history) == [10, 20]


def test_a_run_from_the_beginning_drops_all_lines(history: Path) -> None:
    open_log(history).close()
    assert rows(history) == []
