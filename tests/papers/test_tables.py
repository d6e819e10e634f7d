"""`tools.papers.tables table`: the figures of a matrix, beside those of the paper."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.in_process import exit_status, refusal
from tests.papers.matrices import read_matrix, write_matrix
from tools.papers import results, tables
from tools.papers.matrix import Matrix, Work


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


# --- a table of pairs ------------------------------------------------------------------------


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
