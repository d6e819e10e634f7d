"""`tools.papers.tables table`: a table of a matrix's figures and of the paper's."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.papers.matrices import read_matrix, write_matrix
from tools.papers import results, tables
from tools.papers.matrix import Job, Matrix, Training


class Figures(NamedTuple):
    """Accuracy in percent, and alpha of the output, of a training or ensemble."""

    accuracy: float
    alpha: float


FIGURES = {  # by the name of the job
    "soft seed 1": Figures(70.0, 1.0),
    "soft seed 2": Figures(71.0, 1.0),
    "soft seed 3": Figures(72.0, 1.0),
    "sparse seed 1": Figures(74.0, 1.5),
    "sparse seed 2": Figures(73.0, 1.5),
    "soft ensemble": Figures(75.5, 1.0),
}


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """A matrix of three cells that has `FIGURES` without having run; the third cell has none.

    It is compared with the paper's table "medium": see published.tsv.
    """

    def figures_of(job: Job) -> dict[str, float] | None:
        if job.name not in FIGURES:
            return None
        figures = FIGURES[job.name]
        return {
            "accuracy": figures.accuracy,
            "output_alpha": figures.alpha,
            "attention_alpha": 1.5,
            "exhaustive": 80.0 + (job.seed if isinstance(job, Training) else 0),
            "output_support": 1.25,
        }

    monkeypatch.setattr(results, "figures_of", figures_of)
    cells = {"soft": {"generator_function": "softmax"}, "sparse": None, "none": None}
    return read_matrix(write_matrix(tmp_path, cells=cells, seeds=[1, 2, 3]))


@pytest.fixture
def table(matrix: Matrix, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the table in Markdown: headings, a rule, three cells, and what follows."""
    assert tables.main(["table", str(matrix.path)]) == 0
    return capsys.readouterr().out.splitlines()


def cells_of(line: str) -> list[str]:
    """Return the cells of a line in Markdown."""
    return line.removeprefix("| ").removesuffix(" |").split(" | ")


def test_the_table_stands_beside_the_papers(table: list[str]) -> None:
    """Each cell has the figures that the paper has for the same alphas."""
    head, _, soft, sparse, *_ = map(cells_of, table)
    assert head[1:5] == ["output α", "attention α", "paper", "paper, ens."]
    assert soft[1:5] == ["1", "1.5", "83.20", "85.63"]
    assert sparse[1:5] == ["1.5", "1.5", "84.93", "86.55"]


def test_figures_are_means_and_deviations_of_the_runs_that_are_done(table: list[str]) -> None:
    head, _, soft, sparse, *_ = map(cells_of, table)
    assert head[5:7] == ["accuracy", "runs"]
    assert soft[5:7] == ["71.00 ± 1.00", "3"]
    assert sparse[5:7] == ["73.50 ± 0.71", "2"]


def test_an_ensemble_has_a_figure_if_it_is_done(table: list[str]) -> None:
    head, _, soft, sparse, *_ = map(cells_of, table)
    assert (head[7], soft[7], sparse[7]) == ("accuracy, ens.", "75.50", "-")


def test_figures_of_the_search_have_columns(table: list[str]) -> None:
    head, _, soft, *_ = map(cells_of, table)
    assert head[8:] == ["exhaustive %", "output nonzeros"]
    assert soft[8:] == ["82.00 ± 1.00", "1.25 ± 0.00"]


def test_a_cell_without_runs_has_no_figures(table: list[str]) -> None:
    _, _, _, _, none, *_ = map(cells_of, table)
    assert none == ["none", "-", "-", "-", "-", "-", "0", "-", "-", "-"]


def test_differences_have_their_standard_errors(table: list[str]) -> None:
    """The variances are 1 over 3 runs and 0.5 over 2, so the error is sqrt(1 / 3 + 0.5 / 2) = 0.76.

    All runs are apart, since 73 and 74 are above 72, the best run of the first cell.
    """
    assert "| sparse | +2.50 | 0.76 | yes |" in table


def test_the_table_ends_with_the_papers_share_of_exhaustive_searches(table: list[str]) -> None:
    assert "79 % of the words" in table[-1]


@pytest.fixture
def latex(matrix: Matrix, capsys: pytest.CaptureFixture[str]) -> str:
    """The first table in LaTeX."""
    assert tables.main(["table", str(matrix.path), "--latex"]) == 0
    text, *_ = capsys.readouterr().out.partition("\n\n")
    return text


def test_a_table_in_latex_has_the_same_figures(latex: str) -> None:
    assert r"soft & 1 & 1.5 & 83.20 & 85.63 & 71.00 $\pm$ 1.00 & 3 & 75.50" in latex


def test_rows_of_latex_have_as_many_cells_as_columns_are_declared(latex: str) -> None:
    columns = len(latex.split("{")[2].split("}")[0])  # of {tabular}{lrr...}
    rows = [line for line in latex.splitlines()[1:-1] if "&" in line]
    assert {line.count("&") + 1 for line in rows} == {columns}
