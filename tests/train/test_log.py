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


class TestRows:
    """Two reports of updates and two validations; 75 seconds, of which 10 were a validation."""

    @pytest.fixture(autouse=True)
    def write_log(self, tmp_path: Path, clock: FakeClock, printed: object) -> None:
        with closing(open_log(tmp_path)) as writer:
            writer.advance(Progress(50, 0.2, 3.0))
            writer.add(loss=60.0, tokens=400, correct=350, support=1500)
            writer.add(loss=27.126, tokens=200, correct=192.8, support=700.2)
            writer.waited(1.3)
            clock.now += 75
            writer.paused(10)
            writer.training(Progress(250, 1.96, 30.0), **RATE)
            writer.validation(Progress(250, 1.96, 31.0), MEASURES, best_step=250)
            writer.validation(Progress(4000, 31.4, 32.0), MEASURES, best_step=250)
            clock.now += 1
            writer.training(Progress(4000, 31.4, 32.0), **RATE, skipped=2, gpu_gb=2.6437)

    def test_are_printed_as_lines(self, printed: Callable[[], list[str]]) -> None:
        assert len(printed()) == 4

    def test_of_training_are_averages_over_tokens(self, tmp_path: Path) -> None:
        row, *_ = rows(tmp_path)
        assert row == {
            "kind": "train",
            "step": 250,
            **RATE,
            "loss": (60.0 + 27.126) / 600,
            "token_accuracy": 100 * (350 + 192.8) / 600,
            "support": (1500 + 700.2) / 600,
            "tokens_per_second": 600 / 65,
            "input_percent": 100 * 1.3 / 65,
        }

    def test_of_validations_are_measures(self, tmp_path: Path) -> None:
        _, row, *_ = rows(tmp_path)
        assert row == {"kind": "valid", "step": 250, **MEASURES}


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


def test_the_factor_of_a_calibration_is_printed(
    tmp_path: Path, printed: Callable[[], list[str]]
) -> None:
    with closing(open_log(tmp_path)) as writer:
        writer.validation(Progress(250, 1.96, 31.0), {**MEASURES, "output_factor": 0.468}, 250)
    assert "  output times 0.47  " in printed()[0]


def test_a_line_that_the_system_writes_in_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ShortWrites(FileIO):
        def write(self, data: Any) -> int:
            return super().write(data[:7])

    monkeypatch.setattr(log, "FileIO", ShortWrites)
    with closing(open_log(tmp_path)) as writer:
        writer.validation(Progress(250, 1.96, 31.0), MEASURES, best_step=250)
    assert rows(tmp_path) == [{"kind": "valid", "step": 250, **MEASURES}]


class TestTheHistoryOfARun:
    @pytest.fixture(autouse=True)
    def write_history(self, tmp_path: Path) -> None:
        """Two validations, then damage, and a line of which a kill left the half."""
        with closing(open_log(tmp_path)) as writer:
            for step in (10, 20):
                writer.validation(Progress(step, 0.1, 1.0), MEASURES, step)
        damage = [b"\0\0}", b"\xff}", b"[1]}", b'{"step": null}', b'{"kind": "train", "st']
        with open(tmp_path / "metrics.jsonl", "ab") as file:
            file.write(b"\n".join(damage))

    def steps(self, folder: Path) -> list[int]:
        return [row["step"] for row in rows(folder)]

    def test_is_on_disk_before_the_first_new_line(self, tmp_path: Path) -> None:
        """Up to the step of resuming; nothing is lost by a kill then."""
        with closing(open_log(tmp_path, first=10)):
            assert self.steps(tmp_path) == [10]

    def test_is_continued(self, tmp_path: Path) -> None:
        with closing(open_log(tmp_path, first=10)) as writer:
            writer.validation(Progress(15, 0.1, 1.0), MEASURES, 15)
        assert self.steps(tmp_path) == [10, 15]

    def test_is_left_out_by_a_run_from_the_beginning(self, tmp_path: Path) -> None:
        open_log(tmp_path).close()
        assert rows(tmp_path) == []
