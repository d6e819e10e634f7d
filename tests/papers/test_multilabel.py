"""The command `tools.papers.sparsemax multilabel`: its table, its files, and what it refuses."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.commands import json_lines
from tests.in_process import exit_status, refusal
from tests.papers.multilabel_examples import random_examples
from tools.papers import multilabel, sparsemax


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ROWS = 24  # of the data set
SETTINGS = {
    "name": "scene",
    "train": "d.svm",
    "labels": "labels.xml",
    "out": "out",
    "folds": 2,
    "seeds": 2,
    "losses": ["sparsemax", 1.25],
    "l2": [0.1],
    "standardise": False,
}


def write_settings(**changes: object) -> None:
    Path("m.yaml").write_text(yaml.safe_dump({**SETTINGS, **changes}))


class Measured(NamedTuple):
    """A folder with a data set and its results, and the table that was printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Run the command on a data set, beside which lies a test set with the same rows."""
    from sklearn.datasets import dump_svmlight_file  # takes a second

    folder = tmp_path_factory.mktemp("multilabel")
    examples = random_examples(ROWS)
    names = "".join(f'<label name="{name}"></label>' for name in ("it's", "y"))
    labels = examples.labels[:, :2].numpy().astype(int)  # as many as names; some rows have none
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.chdir(folder)
        Path("labels.xml").write_text(f'<labels xmlns="http://mulan">{names}</labels>')
        for name in ("d.svm", "t.svm"):
            dump_svmlight_file(examples.features, labels, name, zero_based=False, multilabel=True)
        write_settings()
        assert exit_status(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    return Measured(folder, printed.getvalue())


@pytest.fixture
def table(measured: Measured) -> str:
    """The printed table; data set and results are in the working directory."""
    shutil.copytree(measured.folder, Path(), dirs_exist_ok=True)
    return measured.printed


def test_a_table_has_the_figures_of_the_paper(table: str) -> None:
    (row,) = (line for line in table.splitlines() if line.startswith("| sparsemax |"))
    assert "| 73.45 / 74.57 |" in row


@pytest.mark.usefixtures("table")
def test_every_row_is_predicted_once() -> None:
    predictions = json_lines(Path("out/1.25.predictions.jsonl"))
    assert [prediction["row"] for prediction in predictions] == list(range(1, ROWS + 1))


@pytest.mark.usefixtures("table")
def test_probabilities_of_an_entmax_loss_sum_to_one() -> None:
    predictions = json_lines(Path("out/1.25.predictions.jsonl"))
    sums = [sum(prediction["probabilities"].values()) for prediction in predictions]
    assert sums == pytest.approx([1] * ROWS, abs=1e-5)


def test_a_second_call_prints_the_table_without_fitting_anything(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multilabel, "cross_validate", None)  # a call of it would fail
    assert exit_status(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    assert capsys.readouterr().out == table


@pytest.mark.usefixtures("table")
def test_missing_predictions_are_made_again() -> None:
    predictions = Path("out/1.25.predictions.jsonl")
    before = predictions.read_text()
    predictions.unlink()
    assert exit_status(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    assert predictions.read_text() == before


@pytest.mark.usefixtures("table")
def test_a_test_set_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(sparsemax.main, ["multilabel", "m.yaml", "--test", "t.svm"]) == 0
    assert "scene, test, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("fold", 2, id="an unknown key"),
        pytest.param("folds", 0, id="too few folds"),
        pytest.param("l2", [], id="an empty list"),
        pytest.param("losses", [0.5], id="an alpha below 1"),
    ],
)
def test_wrong_settings_are_named(name: str, value: object) -> None:
    write_settings(**{name: value})
    assert f"m.yaml: {name}" in refusal(sparsemax.main, ["multilabel", "m.yaml"])
