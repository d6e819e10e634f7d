"""Cells of paradigms that training keeps: in its checkpoints, in exported folders, in paradigms."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli import export, paradigm, prepare_sigmorphon, train, verify
from tests.cli.tables import write_table
from tests.in_process import exit_status, refusal, success


class Trained(NamedTuple):
    """A run of two updates, the cells in its last checkpoint, and its exported folder."""

    model: Path
    cells: dict[str, dict[tuple[str, ...], int]]
    exported: Path


# The number of training rows of each cell.
TRAINED_CELLS = {("V", "PST"): 2, ("N",): 1, ("V", "NOM(3,SG)"): 1}
QUICK = "-rnn_size 8 -word_vec_size 8 -valid_steps 2 -save_checkpoint_steps 2".split()


def train_in(folder: Path) -> Path:
    """Prepare four rows and train a model on them; return the folder of both."""
    rows = ["ab\tabx\tV;PST", "b\tbx\tV;PST", "a\ta\tV;NOM(3,SG)", "a\ta\tN"]
    for part in ("train", "dev"):
        write_table(folder / f"x-{part}", *rows)
    data = folder / "data"
    success(prepare_sigmorphon.main, ["--data", folder, "--out", data])
    success(train.main, ["-config", data / "train.yaml", *QUICK, "-train_steps", 2])
    return data


@pytest.fixture(scope="module")
def cells_trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Tests only read its folders."""
    folder = tmp_path_factory.mktemp("trained")
    data, exported = train_in(folder), folder / "exported"
    success(export.main, [data / "model", exported])
    cells = read_cells(data / "model" / "step_2")
    return Trained(data / "model", cells, exported)


def test_training_keeps_the_cells(cells_trained: Trained) -> None:
    assert cells_trained.cells == {"x": TRAINED_CELLS}


def test_folders_with_cells_are_verified(cells_trained: Trained) -> None:
    folders = [str(cells_trained.exported), str(cells_trained.model)]
    assert exit_status(verify.main, folders) == 0


def tags_of_paradigm(model: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Return the tags of all cells of a verb, which `paradigm` fills with this model."""
    words = ["x", "ab", "--pos", "V", "--format", "json", "--model", model]
    assert exit_status(paradigm.main, [str(word) for word in words]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    return {cell["tags"] for section in sections for cell in section["cells"]}


def test_a_paradigm_has_the_cells_of_training(
    cells_trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tags_of_paradigm(cells_trained.model, capsys) == {"V;PST", "V;NOM(3,SG)"}


def test_a_paradigm_of_an_exported_model_has_the_cells_of_training(
    cells_trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tags_of_paradigm(cells_trained.exported, capsys) == {"V;PST", "V;NOM(3,SG)"}


def test_cells_of_an_earlier_training_stay(tmp_path: Path) -> None:
    """Cells that are counted again have the new number, not the sum: V;PST has 1, not 3."""
    data = train_in(tmp_path)
    sources = ["lang=x +V +PST b", "lang=x +PRS a", "lang=y +V +PST a b", "lang=y +N a"]
    for part in ("train", "dev"):
        write_table(data / f"{part}.src", *sources)
    resume = ["-train_steps", 4, "-train_from", data / "model"]
    success(train.main, ["-config", data / "train.yaml", *QUICK, *resume])
    assert read_cells(data / "model" / "step_4") == {
        "x": {**TRAINED_CELLS, ("V", "PST"): 1, ("PRS",): 1},
        "y": {("V", "PST"): 1, ("N",): 1},
    }


def test_a_changed_file_of_cells_is_refused(cells_trained: Trained, tmp_path: Path) -> None:
    exported = shutil.copytree(cells_trained.exported, tmp_path / "exported")
    with open(exported / "cells.tsv", "a", encoding="utf-8") as file:
        file.write("x\tV;FUT\t1\n")
    words = ["x", "ab", "--pos", "V", "--model", exported]
    assert "cells.tsv: its content is not what was written" in refusal(paradigm.main, words)
