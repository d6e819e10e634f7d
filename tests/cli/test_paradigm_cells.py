"""Cells of paradigms: counted in training sources, kept by training, read from a file."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli import export, paradigm, prepare_sigmorphon, train, verify
from onmt_entmax.paradigm import cells_of
from onmt_entmax.strings.cells import count_cells
from tests.cli.paradigms import CELLS
from tests.cli.tables import write_table
from tests.in_process import exit_status, refusal, success


def test_cells_of_sources_are_counted() -> None:
    """Lines without a language or tags have none."""
    sources = [
        f"lang={language} {' '.join(f'+{tag}' for tag in tags)} a"
        for language, counts in CELLS.items()
        for tags, count in counts.items()
        for _ in range(count)
    ]
    assert count_cells(["", "a b", "lang=german a", *sources]) == CELLS


def test_cells_are_read_back(cells_file: Path) -> None:
    assert read_cells(cells_file.parent) == CELLS


def test_a_folder_without_cells_has_none(tmp_path: Path) -> None:
    assert read_cells(tmp_path) == {}


def test_the_same_tags_in_another_order_are_one_cell() -> None:
    cells = {"x": {("V", "A", "B"): 2, ("V", "B", "A"): 1}}
    assert cells_of(cells, "x", "V") == [("V", "A", "B")]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x\tV", id="no number"),
        pytest.param("\tV\t1", id="no language"),
        pytest.param("x y\tV\t1", id="two words"),
        pytest.param("x\t\t1", id="no tags"),
        pytest.param("x\tV\t²", id="no digit"),
        pytest.param("x\tV\t1\t", id="four columns"),
    ],
)
def test_other_lines_are_no_cells(paradigm_model: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "cells").write_text(f"german\tV\t1\n{line}\n", encoding="utf-8")
    words = ["german", "ab", "--model", paradigm_model, "--cells", tmp_path / "cells"]
    assert "cells:2: expected language, tags and number" in refusal(paradigm.main, words)


def test_a_file_without_cells_is_named(paradigm_model: Path, tmp_path: Path) -> None:
    (tmp_path / "cells").touch()
    words = ["german", "ab", "--model", paradigm_model, "--cells", tmp_path / "cells"]
    assert "cells: has no cells; its lines are language, tags" in refusal(paradigm.main, words)


def test_a_model_without_cells_says_where_they_come_from(paradigm_model: Path) -> None:
    words = ["german", "ab", "--model", paradigm_model]
    assert "trained by a version that kept no cells.tsv" in refusal(paradigm.main, words)


# --- cells of a training ---


class Trained(NamedTuple):
    """A run, its cells, and its exported folder."""

    model: Path
    cells: dict[str, dict[tuple[str, ...], int]]
    exported: Path


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


@pytest.mark.parametrize("folder", ["model", "exported"])
def test_a_paradigm_has_the_cells_of_training(
    cells_trained: Trained, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model's folder has them, and so has its exported folder."""
    model = getattr(cells_trained, folder)
    words = ["x", "ab", "--pos", "V", "--format", "json", "--model", model]
    assert exit_status(paradigm.main, [str(word) for word in words]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    tags = {cell["tags"] for section in sections for cell in section["cells"]}
    assert tags == {"V;PST", "V;NOM(3,SG)"}


def test_cells_of_an_earlier_training_stay(tmp_path: Path) -> None:
    """Cells that are counted again have the new number, not the sum."""
    data = train_in(tmp_path)
    for path in (data / "train.src", data / "dev.src"):
        text = path.read_text().replace("+N ", "+PRS ").replace("lang=x", "lang=y", 1)
        path.write_text(text)
    resume = ["-train_steps", 4, "-train_from", data / "model"]
    success(train.main, ["-config", data / "train.yaml", *QUICK, *resume])
    cells = read_cells(data / "model" / "step_4")
    assert cells["x"] == {**TRAINED_CELLS, ("V", "PST"): 1, ("PRS",): 1}


def test_a_changed_file_of_cells_is_refused(cells_trained: Trained, tmp_path: Path) -> None:
    exported = shutil.copytree(cells_trained.exported, tmp_path / "exported")
    with open(exported / "cells.tsv", "a", encoding="utf-8") as file:
        file.write("x\tV;FUT\t1\n")
    words = ["x", "ab", "--pos", "V", "--model", exported]
    assert "cells.tsv: its content is not what was written" in refusal(paradigm.main, words)
