"""`onmt-entmax experiment test`: the test set is measured once, and the record says so."""

import json
import shutil
from pathlib import Path

import pytest

from onmt_entmax.cli import experiment
from onmt_entmax.errors import UserError
from onmt_entmax.experiment.held_out import files_of_test, measurements
from onmt_entmax.experiment.runner import Processes
from tests.ended import ended, refused
from tests.matrices import read, write_matrix


def test_a_test_set_is_where_prepare_writes_it(tmp_path: Path) -> None:
    """`prepare files` writes it to a folder of its own, `prepare sigmorphon` beside the dev set."""
    matrix = read(write_matrix(tmp_path))
    (tmp_path / "test").mkdir()
    for folder in (tmp_path, tmp_path / "test"):
        (folder / "test.src").touch()
        with pytest.raises(UserError, match=f"no test set: {tmp_path}/test.src and"):
            files_of_test(matrix)
        (folder / "test.tgt").touch()
        assert files_of_test(matrix) == (folder / "test.src", folder / "test.tgt")
        (folder / "test.tgt").unlink()


def test_a_test_set_is_measured_once(copied: Path, monkeypatch, capsys) -> None:
    folder = copied.parent
    assert "no test set" in refused(experiment.main, ["test", copied])
    (folder / "test").mkdir()
    for name in ("src", "tgt"):
        lines = (folder / f"valid.{name}").read_text().splitlines(keepends=True)
        (folder / "test" / f"test.{name}").write_text("".join(lines[:6]))

    assert ended(experiment.main, ["test", str(copied)]) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out.splitlines()
    record = folder / "runs" / "test.json"
    assert shown[-1] == f"recorded in {record}"
    entries = json.loads(record.read_text())["measurements"]
    names = ["one seed 1", "one seed 2", "one ensemble"]
    assert [entry["name"] for entry in entries] == names
    assert str(folder / "test" / "test.src") in entries[0]["measured"]["files"]
    written = (folder / "runs" / "one" / "seed-1" / "test" / "dev.pred").read_text()
    assert len(written.splitlines()) == 6
    assert (folder / "runs" / "one" / "seed-1" / "figures.json").is_file()  # still the dev set's

    def never(*_: object) -> None:
        raise AssertionError("measured again")

    commands = []
    monkeypatch.setattr(Processes, "run", never)
    assert ended(experiment.main, ["test", str(copied)]) == 0
    assert capsys.readouterr().out.splitlines() == shown

    changed = folder / "runs" / "one" / "seed-2" / "model"
    step = json.loads((changed / "best.json").read_text())["step"]
    weights = changed / f"step_{step}" / "model.safetensors"
    shutil.copy(folder / "runs/one/seed-1/model" / f"step_{step}" / weights.name, weights)
    figures = folder / "runs" / "one" / "seed-2" / "figures.json"
    assert "not done: one seed 2, one ensemble" in refused(experiment.main, ["test", copied])
    assert figures.is_file()

    monkeypatch.setattr("onmt_entmax.experiment.held_out.figures_of", lambda work: {})
    error = refused(experiment.main, ["test", copied])
    assert f"one seed 2 was measured on {entries[1]['date']} with other weights" in error
    monkeypatch.setattr(Processes, "run", lambda self, words, *_: commands.append(words[0]))
    assert ended(experiment.main, ["test", str(copied), "--again"]) == 0
    assert commands == ["translate"] * 3
    names += names
    assert [each["name"] for each in json.loads(record.read_text())["measurements"]] == names
    shutil.rmtree(folder / "test")


@pytest.mark.parametrize(
    "content", ["{}", '{"measurements": {}}', '{"measurements": [{"name": 1}]}']
)
def test_a_damaged_record_is_one_line(tmp_path: Path, content: str) -> None:
    matrix = read(write_matrix(tmp_path))
    matrix.run.mkdir()
    (matrix.run / "test.json").write_text(content)
    with pytest.raises(UserError, match=r"test\.json: damaged; put a copy back"):
        measurements(matrix)
