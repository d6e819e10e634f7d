"""`tools.papers.tables run`: a matrix is trained, decoded and measured, once.

conftest.py has the matrix that was run, of one cell and two seeds: `finished` to read it, and
`restored_afterwards` to run it again.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.in_process import exit_status, refusal
from tests.papers.matrices import read_matrix
from tests.toy import DEVELOPMENT_PAIRS
from tools.papers import job_figures, tables
from tools.papers.commands import Commands
from tools.papers.matrix import Matrix
from tools.papers.trained_options import check_unchanged

RUNS = ("seed-1", "seed-2", "ensemble")


def figures_of(matrix: Path, run: str) -> dict[str, Any]:
    """Return the figures that a run of the only cell has written."""
    figures: dict[str, Any]
    figures = json.loads((matrix.parent / "runs" / "one" / run / "figures.json").read_text())
    return figures


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_its_files(finished: Path, name: str) -> None:
    folder = finished.parent / "runs" / "one" / name
    names = {path.name for path in folder.iterdir()}
    assert {"log.txt", "dev.pred", "dev.report.jsonl", "figures.json"} <= names
    assert len((folder / "dev.pred").read_text().splitlines()) == DEVELOPMENT_PAIRS


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_its_figures(finished: Path, name: str) -> None:
    """The accuracy of each language, and the alphas of the model."""
    figures = figures_of(finished, name)
    assert set(figures["languages"]) == {"a", "b"}
    assert figures["output_alpha"] == 2


@pytest.mark.parametrize("name", RUNS)
def test_the_main_figure_stands_first(finished: Path, name: str) -> None:
    assert next(iter(figures_of(finished, name))) == "accuracy"


def test_a_training_has_the_options_of_its_cell_and_seed(finished: Path) -> None:
    folder = finished.parent / "runs" / "one" / "seed-2"
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert (config["seed"], config["learning_rate"]) == (2, 0.01)
    assert config["save_model"] == str(folder / "model")


def test_an_ensemble_has_the_models_of_all_seeds(finished: Path) -> None:
    folder = finished.parent / "runs" / "one" / "ensemble"
    models = yaml.safe_load((folder / "translate.yaml").read_text())["model"]
    assert [Path(model).parts[-3] for model in models] == ["seed-1", "seed-2"]


# --- what is run again -----------------------------------------------------------------------


def write_variant(matrix: Path, name: str, section: str, **changes: object) -> Path:
    """Write a matrix beside another one with changes in one section; both have the same runs."""
    content = yaml.safe_load(matrix.read_text())
    content[section] |= changes
    path = matrix.with_name(name)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the commands that a matrix would run, and run none of them."""
    commands: list[list[str]] = []

    def execute(_: Commands, command: list[str], *more: object) -> None:
        commands.append(command)

    monkeypatch.setattr(Commands, "execute", execute)
    return commands


def test_runs_that_are_done_are_not_run_again(
    restored_afterwards: Path, commands: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(tables.main, ["run", str(restored_afterwards), "--jobs", "9"]) == 0
    assert commands == []
    assert capfd.readouterr().err.count("done before") == len(RUNS)


@pytest.fixture
def decoded_again(restored_afterwards: Path, commands: list[list[str]]) -> Matrix:
    """The matrix with another beam, of which the second seed was run again."""
    path = write_variant(restored_afterwards, "wider.yaml", "translate", beam_size=4)
    assert exit_status(tables.main, ["run", str(path), "--seeds", "2"]) == 0
    return read_matrix(path)


def test_another_decoding_resumes_a_training_that_has_nothing_left_to_do(
    decoded_again: Matrix, commands: list[list[str]]
) -> None:
    _, second = decoded_again.trainings()
    train, translate = commands
    assert (train[0], translate[0]) == ("train", "translate")
    assert train[-2:] == ["-train_from", str(second.run_folder)]


def test_another_decoding_has_its_options(decoded_again: Matrix) -> None:
    _, second = decoded_again.trainings()
    assert yaml.safe_load((second.folder / "translate.yaml").read_text())["beam_size"] == 4


def test_figures_of_another_decoding_do_not_count(decoded_again: Matrix) -> None:
    """The first seed was not decoded again, so it has no figures."""
    first, second = decoded_again.trainings()
    assert job_figures.figures_of(first) is None
    assert job_figures.figures_of(second) is not None


@pytest.mark.parametrize("command", ["run", "table"])
def test_a_changed_configuration_is_refused(finished: Path, command: str) -> None:
    path = write_variant(finished, "changed.yaml", "options", learning_rate=0.02)
    line = refusal(tables.main, [command, path])
    assert "seed-1: was trained with learning_rate 0.01, the matrix now says 0.02" in line


def test_a_number_in_another_notation_is_not_a_change(finished: Path) -> None:
    training, *_ = read_matrix(finished).trainings()
    options = {**training.cell.training, "learning_rate": "1e-2"}  # YAML reads 0.01
    check_unchanged(replace(training, cell=replace(training.cell, training=options)))
