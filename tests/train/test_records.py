"""The log of a run, and the part of it that a resumed run keeps."""

import json
import os
from pathlib import Path

import pytest

from onmt_entmax.cli.train import main as train
from onmt_entmax.files import FileError
from onmt_entmax.train import OptimizerConfig, TrainingConfig
from onmt_entmax.train.progress import Progress, Standing
from onmt_entmax.train.records import Records
from tests.toy import write_config

PROGRESS = Progress(TrainingConfig(OptimizerConfig()), 1.5)
LOSS = {"loss": 1.0, "token_accuracy": 50.0, "support": 2.0}
TRAINING = {"learning_rate": 0.1, "tokens_per_second": 9.0}


def at(step: int) -> Standing:
    return Standing(step, 0.1, 1.0)


def lines(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_history_is_on_disk_before_the_first_new_line(tmp_path):
    with Records(tmp_path, 0, PROGRESS, None) as records:
        for step in (10, 20):
            records.training(at(step), LOSS | TRAINING)
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"kind": "train", "st')  # killed in the middle of a line
    records = Records(tmp_path, 10, PROGRESS, None)
    assert [row["step"] for row in lines(tmp_path)] == [10]  # and nothing is lost if killed now
    records.validation(at(15), LOSS, best_step=15)
    records.close()
    assert [(row["kind"], row["step"]) for row in lines(tmp_path)] == [("train", 10), ("valid", 15)]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_new_run_begins_anew(tmp_path):
    for loss in (1.0, 2.0):
        with Records(tmp_path, 0, PROGRESS, None) as records:
            records.training(at(1), LOSS | TRAINING | {"loss": loss})
    assert [(row["step"], row["loss"]) for row in lines(tmp_path)] == [(1, 2.0)]


def test_a_disk_that_fails_is_one_line(tmp_path):
    """/dev/full stands for a disk that is full, or gone."""
    with open("/dev/full", "wb") as full, Records(tmp_path, 0, PROGRESS, None) as records:
        os.dup2(full.fileno(), records._metrics.fileno())
        with pytest.raises(FileError, match=r"metrics.jsonl: cannot be written \(No space left"):
            records.training(at(1), LOSS | TRAINING)
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(FileError, match=r"metrics.jsonl: is a folder"):
        Records(tmp_path, 0, PROGRESS, None)


def test_training_on_a_gpu_logs_its_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("onmt_entmax.train.trainer.most_reserved", lambda device: 2_643_700_000)
    assert not train(["-config", str(write_config(tmp_path, train_steps=2, report_every=1))])
    facts = lines(tmp_path / "run")
    assert [each["gpu_gb"] for each in facts if each["kind"] == "train"] == [2.6437, 2.6437]
