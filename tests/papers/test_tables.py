"""`tools.papers.tables`: a small matrix from start to table, and the ways it can go wrong."""

import io
import json
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from sacrebleu.metrics import BLEU

from onmt_entmax.errors import UserError
from tests.in_process import exit_status, refusal
from tests.papers.matrices import write_matrix
from tools.papers import evaluation, results, run_figures, tables
from tools.papers.matrix import Matrix, Work
from tools.papers.matrix_file import read_matrices
from tools.papers.runner import Runner


def read_matrix(path: Path) -> Matrix:
    (matrix,) = read_matrices(path)
    return matrix


# --- running a matrix ---


@pytest.mark.parametrize("name", ["seed-1", "seed-2", "ensemble"])
def test_every_run_has_its_files(finished: Path, name: str) -> None:
    folder = finished.parent / "runs" / "one" / name
    names = {path.name for path in folder.iterdir()}
    assert {"log.txt", "dev.pred", "dev.report.jsonl", "figures.json"} <= names
    assert len((folder / "dev.pred").read_text().splitlines()) == 40


@pytest.mark.parametrize("name", ["seed-1", "seed-2", "ensemble"])
def test_every_run_has_its_figures(finished: Path, name: str) -> None:
    """The main one first."""
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


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that a matrix wants to run, in place of running them."""
    commands: list[list[str]] = []

    def execute(runner: Runner, command: list[str], *_: object) -> None:
        commands.append(command)

    monkeypatch.setattr(Runner, "execute", execute)
    return commands


def test_what_is_done_is_skipped(
    copied: Path, commands: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(tables.main, ["run", str(copied), "--jobs", "9"]) == 0
    assert commands == []
    assert capfd.readouterr().err.count("done before") == 3


def test_another_decoding_needs_no_training(copied: Path, commands: list[list[str]]) -> None:
    """The training is only resumed, which has nothing left to do."""
    path = copied.with_name("wider.yaml")
    path.write_text(copied.read_text().replace("beam_size: 3", "beam_size: 4"))
    first, second = read_matrix(path).trainings()
    assert run_figures.figures_of(first) is None
    assert exit_status(tables.main, ["run", str(path), "--seeds", "2"]) == 0
    train, translate = commands
    assert (train[0], translate[0]) == ("train", "translate")
    assert train[-2:] == ["-train_from", str(second.run_folder)]
    assert yaml.safe_load((second.folder / "translate.yaml").read_text())["beam_size"] == 4
    assert run_figures.figures_of(second) is not None


@pytest.mark.parametrize("command", ["run", "table"])
def test_a_changed_configuration_is_refused(finished: Path, command: str) -> None:
    path = finished.with_name("changed.yaml")
    path.write_text(finished.read_text().replace("0.01", "0.02"))
    line = refusal(tables.main, [command, path])
    assert "seed-1: was trained with learning_rate 0.01, the matrix now says 0.02" in line


@pytest.fixture
def bleu_training(tmp_path: Path) -> Work:
    """A training of a matrix with BLEU of characters, which was not run."""
    options = {"valid_bleu_tokenize": "char"}
    path = write_matrix(tmp_path, evaluate="bleu", options=options, paper=None)
    training, _ = read_matrix(path).trainings()
    training.folder.mkdir(parents=True)
    return training


def test_bleu_counts_what_validation_counts(bleu_training: Work) -> None:
    matrix = bleu_training.matrix
    references = matrix.reference.read_text().splitlines()
    predictions = [line[:-2] or line for line in references]
    bleu_training.output.write_text("\n".join(predictions) + "\n")
    figures = evaluation.bleu(bleu_training)
    expected = BLEU(tokenize="char").corpus_score(predictions, [references]).score
    assert figures["bleu"] == pytest.approx(expected, abs=1e-4)
    assert "tok:char" in figures["signature"]


def test_the_main_figure_names_its_tokenizer(bleu_training: Work) -> None:
    assert results.main_figure(bleu_training.matrix) == ("bleu", "BLEU (char)")


@pytest.mark.parametrize("name", evaluation.EVALUATE)
def test_an_output_that_was_cut_is_refused(bleu_training: Work, name: str) -> None:
    bleu_training.output.write_text("a\n")
    with pytest.raises(UserError, match=r"dev.pred: 1 line, but .* has 40; they"):
        evaluation.EVALUATE[name].measure(bleu_training)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": [1, 1]}, "seeds: expected different whole numbers"),
        ({"evaluat": "bleu"}, "evaluat: no such key; did you mean 'evaluate'?"),
        ({"cells": {"one": {"rnn_siz": 2}}}, "one: rnn_siz: no such option; did you mean"),
        ({"translate": {"beam_size": 0}}, "one: beam_size"),
    ],
)
def test_a_wrong_matrix_is_refused_before_anything_runs(
    tmp_path: Path, changes: dict, message: str
) -> None:
    line = refusal(tables.main, ["run", write_matrix(tmp_path, **changes)])
    assert message in line
    assert not (tmp_path / "runs").exists()


# --- the table of a matrix ---


class Figures(NamedTuple):
    """Accuracy and alpha of the output of a run."""

    accuracy: float
    alpha: float


FIGURES = {
    "soft seed 1": Figures(70.0, 1.0),
    "soft seed 2": Figures(71.0, 1.0),
    "soft seed 3": Figures(72.0, 1.0),
    "sparse seed 1": Figures(74.0, 1.5),
    "sparse seed 2": Figures(73.0, 1.5),
    "soft ensemble": Figures(75.5, 1.0),
}


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """A matrix of three cells, with figures in place of runs; the third has none."""

    def figures_of(work: Work) -> dict[str, float] | None:
        if work.name not in FIGURES:
            return None
        figures = FIGURES[work.name]
        return {
            "accuracy": figures.accuracy,
            "output_alpha": figures.alpha,
            "attention_alpha": 1.5,
            "exhaustive": 80.0 + (work.seed or 0),
            "output_support": 1.25,
        }

    monkeypatch.setattr(results, "figures_of", figures_of)
    cells = {"soft": {"generator_function": "softmax"}, "sparse": None, "none": None}
    return read_matrix(write_matrix(tmp_path, cells=cells, seeds=[1, 2, 3]))


@pytest.fixture
def table(matrix: Matrix, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The printed lines."""
    assert tables.main(["table", str(matrix.path)]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_table_stands_beside_the_papers(table: list[str]) -> None:
    """With means and standard deviations over the seeds."""
    head, _, soft, sparse, none, *_ = table
    assert head.split(" | ")[3:6] == ["paper", "paper, ens.", "accuracy"]
    assert "| soft | 1 | 1.5 | 83.20 | 85.63 | 71.00 ± 1.00 | 3 | 75.50 | 82.00 ± 1.00 |" in soft
    assert "| sparse | 1.5 | 1.5 | 84.93 | 86.55 | 73.50 ± 0.71 | 2 | - |" in sparse
    assert none.startswith("| none | - | - | - | - | - | 0 | - | - |")


def test_differences_have_their_standard_errors(table: list[str]) -> None:
    """sqrt(1 / 3 + 0.5 / 2) = 0.76; 74 and 73 are both above 72."""
    assert "| sparse | +2.50 | 0.76 | yes |" in table


def test_the_table_ends_with_a_figure_of_the_paper(table: list[str]) -> None:
    assert "79 % of the words" in table[-1]


@pytest.fixture
def latex(matrix: Matrix, capsys: pytest.CaptureFixture[str]) -> str:
    """The same table for LaTeX."""
    assert tables.main(["table", str(matrix.path), "--latex"]) == 0
    text, *_ = capsys.readouterr().out.partition("\n\n")
    return text


def test_a_table_may_be_of_latex(latex: str) -> None:
    assert r"soft & 1 & 1.5 & 83.20 & 85.63 & 71.00 $\pm$ 1.00 & 3 & 75.50" in latex


def test_rows_of_latex_have_as_many_cells_as_columns_are_declared(latex: str) -> None:
    columns = len(latex.split("{")[2].split("}")[0])
    rows = [line for line in latex.splitlines()[1:-1] if "&" in line]
    assert {line.count("&") + 1 for line in rows} == {columns}


# --- a table of pairs ---


def write_pairs(folder: Path) -> Path:
    """Write a matrix of two pairs with two cells, and its test sets."""
    content = yaml.safe_load(write_matrix(folder, evaluate="bleu", paper=None).read_text())
    pair = {key: content.pop(key) for key in ("base", "source", "reference")}
    content |= {"pairs": {"de-en": pair, "en-de": pair}, "seeds": [1], "paper": "table2"}
    functions = ("global_attention_function", "generator_function")
    content["cells"] = {name: dict.fromkeys(functions, name) for name in ("softmax", "entmax15")}
    path = folder / "pairs.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    for side in ("src", "tgt"):
        shutil.copy(folder / f"valid.{side}", folder / f"test.{side}")
    return path


def test_a_pair_that_is_not_there_is_refused(tmp_path: Path) -> None:
    arguments = ["run", write_pairs(tmp_path), "--pairs", "de"]
    assert "no pair 'de'" in refusal(tables.main, arguments)


def test_a_test_set_waits_for_all_runs(tmp_path: Path) -> None:
    line = refusal(tables.main, ["test", write_pairs(tmp_path)])
    assert "not done: de-en softmax seed 1" in line


@pytest.fixture(scope="module")
def pairs_table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The printed table of a matrix of pairs that was run."""
    path = write_pairs(tmp_path_factory.mktemp("pairs"))
    assert exit_status(tables.main, ["run", str(path), "--jobs", "2"]) == 0
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(tables.main, ["table", str(path)]) == 0
    return printed.getvalue()


def test_a_table_of_pairs(pairs_table: str) -> None:
    """A pair has a column; one that the paper has not, none of its figures."""
    head = "| cell | de-en, BLEU (13a), runs 1 | en-de, BLEU (13a), runs 1 |"
    assert pairs_table.startswith(head)
    assert "| softmax, paper, tokenised | 25.70 ± 0.15 | 21.86 ± 0.09 |" in pairs_table
    assert "| entmax15, paper | 5.55 | 16.13 | - | - |" in pairs_table


def test_pairs_are_compared_with_softmax(pairs_table: str) -> None:
    """With a p-value for each."""
    assert "| against softmax | seed | entmax15 |" in pairs_table
    assert pairs_table.count("(p ") == 2
