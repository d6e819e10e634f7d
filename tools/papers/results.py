"""Tables of the results of one matrix, beside published results.

`tables.py` prints them; `pair_results.py` has those of several pairs of languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import mean, variance
from typing import Any, NamedTuple

from tools.papers.evaluation import EVALUATE, tokenizer_of
from tools.papers.job_figures import REPORT_FIGURES, figures_of
from tools.papers.matrix import Cell, Matrix
from tools.papers.published import TRANSFORMERS, Alphas, published, spread

Table = tuple[list[str], list[list[str]]]  # headings, lines
NOTHING = "-"  # in the place of a figure


class Row(NamedTuple):
    """A cell of the matrix with its figures, each a dictionary by name; see `job_figures.py`.

    Attributes:
        cell: the cell.
        singles: figures of each training that is done.
        ensemble: figures of the ensemble; None: there is none, or it is not done.
    """

    cell: Cell
    singles: list[dict[str, Any]]
    ensemble: dict[str, Any] | None

    @property
    def alphas(self) -> Alphas | None:
        """Alphas of the output and of the attention to the source; None before a run is done."""
        if not self.singles:
            return None
        # All runs of a cell have the same.
        return self.singles[0]["output_alpha"], self.singles[0]["attention_alpha"]

    def values(self, name: str) -> list[float]:
        """Return the figure of this name of all single runs that have it."""
        return [figures[name] for figures in self.singles if name in figures]


def rows_of(matrix: Matrix) -> list[Row]:
    """Return every cell with its figures."""
    ensembles = {ensemble.cell.name: figures_of(ensemble) for ensemble in matrix.ensembles()}
    rows = []
    for cell in matrix.cells:
        singles = [figures_of(matrix.training(cell, seed)) for seed in matrix.seeds]
        done = [figures for figures in singles if figures]
        rows.append(Row(cell, done, ensembles.get(cell.name)))
    return rows


def main_figure(matrix: Matrix) -> tuple[str, str]:
    """Return the name of the figure by which cells are compared, and its heading."""
    name = EVALUATE[matrix.evaluate].main
    heading = f"BLEU ({tokenizer_of(matrix.cells[0])})" if name == "bleu" else name
    return name, heading


def one_matrix(matrix: Matrix) -> list[Table]:
    """Return the tables of one matrix: results, and comparisons with the first cell."""
    rows = rows_of(matrix)
    return [_results(matrix, rows), *_comparisons(matrix, rows)]


def _results(matrix: Matrix, rows: Sequence[Row]) -> Table:
    """Return the figures of each cell, beside published ones."""
    figure, title = main_figure(matrix)
    paper = _PublishedColumns(matrix.paper)
    further = {  # figures of the exactness report that any run has, with their headings
        name: heading
        for name, (_, heading) in REPORT_FIGURES.items()
        if heading and any(row.values(name) for row in rows)
    }
    head = ["cell", "output α", "attention α", *paper.headings, title, "runs"]
    if matrix.ensembles():
        head.append(f"{title}, ens.")
    lines = []
    for row in rows:
        values = row.values(figure)
        line = [row.cell.name, *_alpha_cells(row.alphas), *paper.cells(row.alphas)]
        line += [spread(values), str(len(values))]
        if matrix.ensembles():
            line.append(f"{row.ensemble[figure]:.2f}" if row.ensemble else NOTHING)
        lines.append([*line, *(spread(row.values(name)) for name in further)])
    return [*head, *further.values()], lines


class _PublishedColumns:
    """The columns of a published table: of single runs and, if it has them, of ensembles.

    Args:
        table: its name in published.tsv; an unknown or empty name has no columns.
    """

    def __init__(self, table: str) -> None:
        self._values = published(table)
        number = len(next(iter(self._values.values()), ()))  # the same for all alphas
        single = "paper, tokenised" if table in TRANSFORMERS else "paper"
        self.headings = [single, "paper, ens."][:number]

    def cells(self, alphas: Alphas | None) -> list[str]:
        """Return a cell for each heading, without figures if the paper has no such alphas."""
        if alphas is None or alphas not in self._values:
            return [NOTHING] * len(self.headings)
        return [f"{value:.2f}" for value in self._values[alphas]]


def _alpha_cells(alphas: Alphas | None) -> list[str]:
    """Return the cells of both alphas; an alpha that is learned stays a word."""
    if alphas is None:
        return [NOTHING, NOTHING]
    return [alpha if isinstance(alpha, str) else f"{alpha:g}" for alpha in alphas]


def _comparisons(matrix: Matrix, rows: Sequence[Row]) -> list[Table]:
    """Return the differences of cells to the first cell, if several runs of both are done.

    The standard error is Welch's: the cells may have different variances. "All runs apart" means
    that every run of one cell is better than every run of the other; with 3 runs each, chance alone
    gives this in 2 of 20 orders.
    """
    figure, _ = main_figure(matrix)
    first = rows[0].values(figure)
    lines = []
    for row in rows[1:]:
        values = row.values(figure)
        if len(values) > 1 and len(first) > 1:
            error = sqrt(variance(values) / len(values) + variance(first) / len(first))
            apart = min(values) > max(first) or max(values) < min(first)
            difference = f"{mean(values) - mean(first):+.2f}"
            lines.append([row.cell.name, difference, f"{error:.2f}", "yes" if apart else "no"])
    head = [f"against {rows[0].cell.name}", "difference", "standard error", "all runs apart"]
    return [(head, lines)] if lines else []
