"""Reading the measurements of a run, and `onmt-entmax figures curves`."""

import json
import os
from pathlib import Path

import pytest

from onmt_entmax.cli import figures
from onmt_entmax.figures.curves import draw_curves, read_metrics, series
from onmt_entmax.figures.style import prepare
from tests.ended import ended

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
    assert ended(figures.main, ["curves", str(run), "--output", str(tmp_path / "curves.png")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"figures.py: error: {run}")
    assert message in line
    assert list(tmp_path.iterdir()) == [run]


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path, capsys) -> None:
    run = write(tmp_path / "run")
    (run / "metrics.jsonl").write_bytes(b'{"kind": "\xff"}\n')
    assert ended(figures.main, ["curves", str(run), "--output", str(tmp_path / "curves.png")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "metrics.jsonl:1: not UTF-8 text" in line


def test_pictures_are_written_whole_or_not_at_all(tmp_path: Path, capsys, monkeypatch) -> None:
    run, output = write(tmp_path / "run", json.dumps(TRAIN)), tmp_path / "new" / "curves.png"
    assert ended(figures.main, ["curves", str(run), "--output", str(output)]) == 0
    assert output.read_bytes().startswith(b"\x89PNG")
    assert output.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    output.write_text("before")

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert ended(figures.main, ["curves", str(run), "--output", str(output)]) == 2
    assert "cannot be written (No space left" in capsys.readouterr().err
    assert output.read_text() == "before"


def test_a_wide_range_has_a_logarithmic_axis_with_plain_numbers(tmp_path: Path) -> None:
    losses = [json.dumps({**TRAIN, "step": step, "loss": 20 / step**2}) for step in (1, 2, 20)]
    run = write(tmp_path / "run", *losses, json.dumps(VALID))
    prepare()
    figure = draw_curves([run], ["one"])
    figure.canvas.draw()
    wide, narrow = figure.axes[:2]
    assert {"0.1", "1", "10"} <= {label.get_text() for label in wide.get_yticklabels()}
    assert (wide.get_yscale(), narrow.get_yscale()) == ("log", "linear")


def test_less_than_two_decades_have_labels_between_the_powers_of_ten(tmp_path: Path) -> None:
    losses = [json.dumps({**TRAIN, "step": step, "loss": 8 / step**2}) for step in (1, 2, 4)]
    run = write(tmp_path / "run", *losses)
    prepare()
    figure = draw_curves([run], ["one"])
    figure.canvas.draw()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels(minor=True)]
    assert {"0.5", "2", "5"} <= set(labels) <= {"", "0.2", "0.5", "2", "5", "20", "50"}


def test_a_curve_is_of_one_kind_of_measurement() -> None:
    rows = [TRAIN, VALID, {"kind": "valid", "step": 150, "bleu": 3.0}]
    assert series(rows, "train", "loss") == ([50], [2.0])
    assert series(rows, "valid", "loss") == ([100], [1.0])
    assert series(rows, "valid", "bleu") == ([150], [3.0])
