"""Tables of the results of one matrix, beside published results.

`tables.py` prints them; `pair_results.py` has those of several pairs of languages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import sqrt
from statistics import mean, variance
from typing import Any, NamedTuple

from tools.papers.evaluation import EVALUATE, tokenizer_of
from tools.papers.job_figures import REPORT_FIGURES, figures_of
from tools.papers.matrix import Cell, Matrix
from tools.papers.published import TRANSFORMERS, Alphas, published
from tools.papers.spread import spread
from tools.papers.text_table import Table

NOTHING = "-"  # stands for a missing figure


class Row(NamedTuple):
    """A cell of the matrix with its figures, each a dictionary by name; see `job_figures.py`.

    Attributes:
        cell: the cell.
        runs: figures of each training that is done.
        ensemble: figures of the ensemble; None: there is none, or it is not done.
    """

    cell: Cell
    runs: list[dict[str, Any]]
    ensemble: dict[str, Any] | None

    @property
    def alphas(self) -> Alphas | None:
        """Alphas of the output and of the attention to the source; None before a run is done."""
        if not self.runs:
            return None
        first = self.runs[0]  # they are the same in all runs of a cell
        return Alphas(first["output_alpha"], first["attention_alpha"])

    def values(self, name: str) -> list[float]:
        """Return the figure of this name of all runs that have it."""
        return [figures[name] for figures in self.runs if name in figures]


def rows_of(matrix: Matrix) -> list[Row]:
    """Return every cell with its figures."""
    ensembles = {ensemble.cell.name: figures_of(ensemble) for ensemble in matrix.ensembles()}
    rows = []
    for cell in matrix.cells:
        figures_by_seed = [figures_of(matrix.training(cell, seed)) for seed in matrix.seeds]
        runs = [figures for figures in figures_by_seed if figures]
        rows.append(Row(cell, runs, ensembles.get(cell.name)))
    return rows


class MainFigure(NamedTuple):
    """The figure by which cells are compared: its name, and its heading in tables."""

    name: str
    heading: str


def main_figure(matrix: Matrix) -> MainFigure:
    """Return the figure by which the cells of a matrix are compared."""
    name = EVALUATE[matrix.evaluate].main
    heading = f"BLEU ({tokenizer_of(matrix.cells[0])})" if name == "bleu" else name
    return MainFigure(name, heading)


def one_matrix(matrix: Matrix) -> list[Table]:
    """Return the tables of one matrix: results, and comparisons with the first cell."""
    rows = rows_of(matrix)
    return [_results(matrix, rows), *_comparisons(matrix, rows)]


class _Column(NamedTuple):
    """A column of the table of results.

    Attributes:
        heading: text above the column.
        cell: returns the cell of a row.
    """

    heading: str
    cell: Callable[[Row], str]


def _results(matrix: Matrix, rows: Sequence[Row]) -> Table:
    """Return the figures of each cell, beside published ones."""
    figure, title = main_figure(matrix)
    columns = [
        _Column("cell", lambda row: row.cell.name),
        _Column("output α", lambda row: _alpha_text(row.alphas and row.alphas.output)),
        _Column("attention α", lambda row: _alpha_text(row.alphas and row.alphas.attention)),
        *_published_columns(matrix.paper),
        _Column(title, lambda row: spread(row.values(figure))),
        _Column("runs", lambda row: str(len(row.values(figure)))),
    ]
    if matrix.ensembles():
        columns.append(
            _Column(
                f"{title}, ens.",
                lambda row: f"{row.ensemble[figure]:.2f}" if row.ensemble else NOTHING,
            )
        )
    columns += [
        _Column(heading, partial(_mean_of, name))
        for name, (_, heading) in REPORT_FIGURES.items()
        if heading and any(row.values(name) for row in rows)
    ]
    lines = [[column.cell(row) for column in columns] for row in rows]
    return Table([column.heading for column in columns], lines)


def _mean_of(name: str, row: Row) -> str:
    """Return the mean and deviation of a figure over the runs of a row."""
    return spread(row.values(name))


def _published_columns(table: str) -> list[_Column]:
    """Return the columns of a published table: of single runs and, if it has them, of ensembles.

    Args:
        table: its name in published.tsv; an unknown or empty name has no columns.
    """
    figures = published(table)
    number = len(next(iter(figures.values()), ()))  # the same for all alphas
    single = "paper, tokenised" if table in TRANSFORMERS else "paper"
    return [
        _Column(heading, partial(_published_text, figures, position))
        for position, heading in enumerate([single, "paper, ens."][:number])
    ]


def _published_text(figures: Mapping[Alphas, Sequence[float]], position: int, row: Row) -> str:
    """Return one of the published figures of a row's alphas."""
    if row.alphas is None or row.alphas not in figures:
        return NOTHING
    return f"{figures[row.alphas][position]:.2f}"


def _alpha_text(alpha: float | str | None) -> str:
    """Return the cell of an alpha; one that is learned stays a word, and None is not known yet."""
    if alpha is None:
        return NOTHING
    return alpha if isinstance(alpha, str) else f"{alpha:g}"


def _comparisons(matrix: Matrix, rows: Sequence[Row]) -> list[Table]:
    """Return the differences of cells to the first cell, if several runs of both are done.

    The standard error is Welch's: the cells may have different variances. "All runs apart" means
    that every run of one cell is better than every run of the other; with 3 runs each, chance alone
    gives this in 2 of 20 orders.
    """
    name = main_figure(matrix).name
    first = rows[0].values(name)
    lines = []
    for row in rows[1:]:
        values = row.values(name)
        if len(values) > 1 and len(first) > 1:
            error = sqrt(variance(values) / len(values) + variance(first) / len(first))
            apart = min(values) > max(first) or max(values) < min(first)
            difference = f"{mean(values) - mean(first):+.2f}"
            lines.append([row.cell.name, difference, f"{error:.2f}", "yes" if apart else "no"])
    head = [f"against {rows[0].cell.name}", "difference", "standard error", "all runs apart"]
    return [Table(head, lines)] if lines else []
