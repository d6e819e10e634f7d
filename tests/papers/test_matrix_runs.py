"""`tools.papers.tables run`: a matrix is trained, decoded and measured, once.

conftest.py has the matrix that was run, of one cell and two seeds: `finished` to read it, `copied`
to run it again.
"""

import json
from pathlib import Path

import pytest
import yaml
from sacrebleu.metrics import BLEU

from onmt_entmax.errors import UserError
from tests.in_process import exit_status, refusal
from tests.papers.matrices import read_matrix, write_matrix
from tests.toy import DEVELOPMENT_PAIRS
from tools.papers import evaluation, job_figures, results, tables
from tools.papers.commands import Commands
from tools.papers.matrix import Job, Matrix

RUNS = ("seed-1", "seed-2", "ensemble")


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_its_files(finished: Path, name: str) -> None:
    folder = finished.parent / "runs" / "one" / name
    names = {path.name for path in folder.iterdir()}
    assert {"log.txt", "dev.pred", "dev.report.jsonl", "figures.json"} <= names
    assert len((folder / "dev.pred").read_text().splitlines()) == DEVELOPMENT_PAIRS


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_its_figures(finished: Path, name: str) -> None:
    """The main figure stands first."""
    folder = finished.parent / "runs" / "one" / name
    figures = json.loads((folder / "figures.json").read_text())
    assert next(iter(figures)) == "accuracy"
    assert set(figures["languages"]) == {"a", "b"}
    assert figures["output_alpha"] == 2


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
    """Write a matrix beside another one, whose runs it has, with changes to one of its keys."""
    content = yaml.safe_load(matrix.read_text())
    content[section] |= changes
    path = matrix.with_name(name)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that a matrix wants to run, in place of running them."""
    commands: list[list[str]] = []

    def execute(_: Commands, command: list[str], *more: object) -> None:
        commands.append(command)

    monkeypatch.setattr(Commands, "execute", execute)
    return commands


def test_what_is_done_is_skipped(
    copied: Path, commands: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(tables.main, ["run", str(copied), "--jobs", "9"]) == 0
    assert commands == []
    assert capfd.readouterr().err.count("done before") == len(RUNS)


@pytest.fixture
def decoded_again(copied: Path, commands: list[list[str]]) -> Matrix:
    """The matrix with another beam, of which the second seed was run again."""
    path = write_variant(copied, "wider.yaml", "translate", beam_size=4)
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
    """Those of the first seed, which was not decoded again."""
    first, second = decoded_again.trainings()
    assert job_figures.figures_of(first) is None
    assert job_figures.figures_of(second) is not None


@pytest.mark.parametrize("command", ["run", "table"])
def test_a_changed_configuration_is_refused(finished: Path, command: str) -> None:
    path = write_variant(finished, "changed.yaml", "options", learning_rate=0.02)
    line = refusal(tables.main, [command, path])
    assert "seed-1: was trained with learning_rate 0.01, the matrix now says 0.02" in line


# --- figures ---------------------------------------------------------------------------------


@pytest.fixture
def bleu_training(tmp_path: Path) -> Job:
    """A training of a matrix with BLEU of characters, which was not run."""
    options = {"valid_bleu_tokenize": "char"}
    path = write_matrix(tmp_path, evaluate="bleu", options=options, paper=None)
    training, _ = read_matrix(path).trainings()
    training.folder.mkdir(parents=True)
    return training


def test_bleu_counts_what_validation_counts(bleu_training: Job) -> None:
    matrix = bleu_training.matrix
    references = matrix.reference.read_text().splitlines()
    predictions = [line[:-2] or line for line in references]
    bleu_training.output.write_text("\n".join(predictions) + "\n")
    figures = evaluation.bleu(bleu_training)
    expected = BLEU(tokenize="char").corpus_score(predictions, [references]).score
    assert figures["bleu"] == pytest.approx(expected, abs=1e-4)
    assert "tok:char" in figures["signature"]


def test_the_main_figure_names_its_tokenizer(bleu_training: Job) -> None:
    assert results.main_figure(bleu_training.matrix) == ("bleu", "BLEU (char)")


@pytest.mark.parametrize("name", evaluation.EVALUATE)
def test_an_output_that_was_cut_is_refused(bleu_training: Job, name: str) -> None:
    bleu_training.output.write_text("a\n")
    with pytest.raises(UserError, match=rf"dev.pred: 1 line, but .* has {DEVELOPMENT_PAIRS}; they"):
        evaluation.EVALUATE[name].measure(bleu_training)


# --- wrong matrices --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"seeds": [1, 1]}, "seeds: expected different whole numbers", id="a seed twice"
        ),
        pytest.param(
            {"evaluat": "bleu"},
            "evaluat: no such key; did you mean 'evaluate'?",
            id="a misspelt key",
        ),
        pytest.param(
            {"cells": {"one": {"rnn_siz": 2}}},
            "one: rnn_siz: no such option; did you mean",
            id="a misspelt option",
        ),
        pytest.param({"translate": {"beam_size": 0}}, "one: beam_size", id="a value out of range"),
    ],
)
def test_a_wrong_matrix_is_refused_before_anything_runs(
    tmp_path: Path, changes: dict, message: str
) -> None:
    line = refusal(tables.main, ["run", write_matrix(tmp_path, **changes)])
    assert message in line
    assert not (tmp_path / "runs").exists()
