"""The log of a run, and the part of it that a resumed run keeps."""

import json
import os
from pathlib import Path

import pytest

from onmt_entmax.files import FileError
from onmt_entmax.train.records import Records


def lines(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_history_is_on_disk_before_the_first_new_line(tmp_path):
    with Records(tmp_path, 0, 30, None) as records:
        for step in (10, 20):
            records.training(step, {"loss": step / 10})
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"kind": "train", "st')  # killed in the middle of a line
    records = Records(tmp_path, 10, 30, None)
    assert [row["step"] for row in lines(tmp_path)] == [10]  # and nothing is lost if killed now
    records.validation(15, {"loss": 1.0})
    records.close()
    assert [(row["kind"], row["step"]) for row in lines(tmp_path)] == [("train", 10), ("valid", 15)]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_new_run_begins_anew(tmp_path):
    for loss in (1.0, 2.0):
        with Records(tmp_path, 0, None, None) as records:
            records.training(1, {"loss": loss})
    assert lines(tmp_path) == [{"kind": "train", "step": 1, "loss": 2.0}]


def test_a_disk_that_fails_is_one_line(tmp_path):
    """/dev/full stands for a disk that is full, or gone."""
    with open("/dev/full", "wb") as full, Records(tmp_path, 0, None, None) as records:
        os.dup2(full.fileno(), records._metrics.fileno())
        with pytest.raises(FileError, match=r"metrics.jsonl: cannot be written \(No space left"):
            records.training(1, {"loss": 2.0})
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(FileError, match=r"metrics.jsonl: is a folder"):
        Records(tmp_path, 0, None, None)
