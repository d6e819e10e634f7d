"""tools/plot_run.py on written metrics."""

import json
import os
from pathlib import Path

import pytest

from onmt_entmax.figures.curves import read_metrics, series
from tests.ended import ended
from tools import plot_run

TRAIN = {"kind": "train", "step": 50, "loss": 2.0}
VALID = {"kind": "valid", "step": 100, "loss": 1.0}


def write(folder: Path, *lines: str) -> Path:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_half_a_line_at_the_end_is_passed_over(tmp_path: Path) -> None:
    whole = [json.dumps(TRAIN), json.dumps(VALID)]
    for cut in range(len(whole[1])):
        run = write(tmp_path / str(cut), whole[0], whole[1][:cut])
        assert read_metrics(run) == [TRAIN]
    assert read_metrics(write(tmp_path / "whole", *whole)) == [TRAIN, VALID]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[1]"], ":1: not a measurement"),
        ([json.dumps(TRAIN), '{"step": 1}'], ":2: not a measurement"),
        (['{"kind": "train", "step": "1"}'], ":1: not a measurement"),
        (['{"kind": "tra', json.dumps(TRAIN)], ":1: not JSON"),
        (["a", ""], ":1: not JSON"),
        (['{"kind": "tra'], ": nothing that can be drawn was measured"),
        ([json.dumps({"kind": "valid", "step": 1})], ": nothing that can be drawn was measured"),
    ],
)
def test_metrics_that_cannot_be_drawn_are_one_line(tmp_path, capsys, lines, message) -> None:
    run = write(tmp_path / "run", *lines)
    assert ended(plot_run.main, [str(run), "--output", str(tmp_path / "curves.png")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"plot_run.py: error: {run}")
    assert message in line
    assert list(tmp_path.iterdir()) == [run]


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path, capsys) -> None:
    run = write(tmp_path / "run")
    (run / "metrics.jsonl").write_bytes(b'{"kind": "\xff"}\n')
    assert ended(plot_run.main, [str(run), "--output", str(tmp_path / "curves.png")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "metrics.jsonl:1: not UTF-8 text" in line


def test_a_picture_is_written_whole_or_not_at_all(tmp_path: Path, capsys, monkeypatch) -> None:
    run, output = write(tmp_path / "run", json.dumps(TRAIN)), tmp_path / "new" / "curves.svg"
    assert ended(plot_run.main, [str(run), "--output", str(output)]) == 0
    assert "</svg>" in output.read_text()
    output.write_text("before")

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert ended(plot_run.main, [str(run), "--output", str(output)]) == 2
    assert "curves.svg: cannot be written (No space left" in capsys.readouterr().err
    assert output.read_text() == "before"
    assert list(output.parent.iterdir()) == [output]
    assert ended(plot_run.main, [str(run), "--output", str(tmp_path / "curves")]) == 2
    assert "curves: a picture ends in .png, .pdf, .svg" in capsys.readouterr().err


def test_a_curve_is_of_one_kind_of_measurement() -> None:
    rows = [TRAIN, VALID, {"kind": "valid", "step": 150, "bleu": 3.0}]
    assert series(rows, "train", "loss") == ([50], [2.0])
    assert series(rows, "valid", "loss") == ([100], [1.0])
    assert series(rows, "valid", "bleu") == ([150], [3.0])
