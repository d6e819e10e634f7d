"""tools/time_to.py on written metrics."""

import json
import math
from pathlib import Path

import pytest

from tests.ended import refused
from tools import time_to


def write(folder: Path, rows: list[dict]) -> Path:
    folder.mkdir()
    lines = (json.dumps(row) for row in rows)
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def valid(step: int, seconds: float, **values: float) -> dict:
    return {"kind": "valid", "step": step, "seconds": seconds, **values}


@pytest.fixture
def run(tmp_path):
    return write(
        tmp_path / "run",
        [
            {"kind": "train", "step": 50, "loss": 0.1},
            valid(100, 10.4, exact_match=40.0, loss=0.9),
            valid(200, 20.6, exact_match=72.0, loss=0.5),
            valid(300, 31.0, exact_match=69.0, loss=0.3),
            valid(400, 41.0, exact_match=70.0, loss=0.4),
        ],
    )


def test_the_first_validation_counts_even_if_it_falls_again(run):
    (line,) = time_to.table([run], "exact_match", [40, 70, 72.5]).splitlines()[2:]
    assert line == f"| {run} | 10 s, 100 | 21 s, 200 | never | 72 |"


def test_what_is_no_number_counts_for_nothing(tmp_path):
    rows = [valid(1, 1.0, loss=math.nan), valid(2, 2.0, loss=0.5), valid(3, 3.0, loss="low")]
    run = write(tmp_path / "run", rows)
    (line,) = time_to.table([run], "loss", [0.9]).splitlines()[2:]
    assert line == f"| {run} | 2 s, 2 | 0.5 |"


def test_losses_are_better_when_smaller(run):
    (line,) = time_to.table([run], "loss", [0.5]).splitlines()[2:]
    assert line == f"| {run} | 21 s, 200 | 0.3 |"


def test_a_line_for_each_run(run, tmp_path):
    other = write(tmp_path / "other", [valid(5, 1.0, exact_match=80.0)])
    lines = time_to.table([run, other], "exact_match", [70]).splitlines()
    assert lines[0] == "| run | exact_match 70 | best |"
    assert lines[3] == f"| {other} | 1 s, 5 | 80 |"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nowhere", "--values", "1"], "nowhere"),
        (["{run}", "--values", "1", "--measure", "bleu"], "bleu"),
    ],
)
def test_errors_are_one_line(run, arguments, word):
    assert word in refused(time_to.main, [text.format(run=run) for text in arguments])
