"""The results of a matrix of several pairs of languages as tables, beside published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tools.papers.held_out_record import read_record
from tools.papers.matrix import Job, Matrix
from tools.papers.paired_tests import tests_of_pairs
from tools.papers.published import Alphas, published_bleu, published_nonzeros
from tools.papers.results import NOTHING, Row, main_figure, rows_of
from tools.papers.spread import spread
from tools.papers.text_table import Table

NONZEROS = ("attention_support", "output_support")  # names of figures


def several_pairs(matrices: Sequence[Matrix]) -> list[Table]:
    """Return the tables of several pairs of languages, which have the same cells.

    The first table has the results of each cell in each pair, with lines for its ensemble, for test
    sets and for the paper. Tests follow, which compare each run with that of the first cell with
    the same seed. The last table has nonzeros of attention and output.
    """
    rows_by_pair = [rows_of(matrix) for matrix in matrices]
    cells = [
        [_CellInPair(matrix, row) for matrix, row in zip(matrices, rows, strict=True)]
        for rows in zip(*rows_by_pair, strict=True)
    ]
    heads = [_heading(matrix, rows) for matrix, rows in zip(matrices, rows_by_pair, strict=True)]
    sides = [f"{matrix.pair}, {side}" for matrix in matrices for side in ("attention", "output")]
    results = Table(["cell", *heads], [line for cell in cells for line in _result_lines(cell)])
    tests = tests_of_pairs(matrices)
    nonzeros = Table(
        ["nonzeros", *sides], [line for cell in cells for line in _nonzero_lines(cell)]
    )
    return [table for table in (results, tests, nonzeros) if table is not None]


def _heading(matrix: Matrix, rows: Sequence[Row]) -> str:
    """Return the heading of a pair's results: its name, the measure, and the number of runs."""
    counts = [len(row.runs) for row in rows]
    fewest, most = min(counts), max(counts)
    runs = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{matrix.pair}, {main_figure(matrix).heading}, runs {runs}"


class _CellInPair(NamedTuple):
    """A cell with its figures for one pair of languages.

    Attributes:
        matrix: matrix of the pair of languages.
        row: the cell and its figures on the validation set.
    """

    matrix: Matrix
    row: Row

    def run_figures(self) -> list[float]:
        """Return the main figure of each run."""
        return self.row.values(main_figure(self.matrix).name)

    def ensemble_figures(self) -> list[float]:
        """Return the main figure of the ensemble; empty if there is none."""
        name = main_figure(self.matrix).name
        return [self.row.ensemble[name]] if self.row.ensemble else []

    def trainings(self) -> list[Job]:
        """Return the training with each seed."""
        return [self.matrix.training(self.row.cell, seed) for seed in self.matrix.seeds]

    def ensembles(self) -> list[Job]:
        """Return the ensemble; empty if there is none."""
        return [job for job in self.matrix.ensembles() if job.cell.name == self.row.cell.name]

    def published_bleu(self, alphas: Alphas) -> str:
        """Return the paper's mean and deviation for alphas."""
        figures = published_bleu(self.matrix.pair).get(alphas)
        return NOTHING if figures is None else f"{figures.mean:.2f} ± {figures.deviation:.2f}"

    def published_nonzeros(self, alphas: Alphas) -> list[str]:
        """Return the paper's nonzeros of attention and output for alphas."""
        figures = published_nonzeros(self.matrix.pair).get(alphas)
        return [NOTHING, NOTHING] if figures is None else [f"{value:g}" for value in figures]


def _result_lines(cell: Sequence[_CellInPair]) -> list[list[str]]:
    """Return the lines of a cell: runs, then test sets, ensembles and paper, if there are any.

    All but those of the paper are means over runs, with standard deviations.

    Args:
        cell: a cell with its figures for each pair.
    """
    name = cell[0].row.cell.name
    lines = [[name, *(spread(pair.run_figures()) for pair in cell)]]
    for suffix, values in (
        ("test", [_test_figures(pair.trainings()) for pair in cell]),
        ("ensemble", [pair.ensemble_figures() for pair in cell]),
        ("ensemble, test", [_test_figures(pair.ensembles()) for pair in cell]),
    ):
        if any(values):
            lines.append([f"{name}, {suffix}", *map(spread, values)])
    alphas = _published_alphas(cell)
    if alphas is not None:
        published = [pair.published_bleu(alphas) for pair in cell]
        lines.append([f"{name}, paper, tokenised", *published])
    return lines


def _nonzero_lines(cell: Sequence[_CellInPair]) -> list[list[str]]:
    """Return the lines of a cell with nonzeros of attention and output: ours, and the paper's."""
    name = cell[0].row.cell.name
    lines = [[name, *(spread(pair.row.values(figure)) for pair in cell for figure in NONZEROS)]]
    alphas = _published_alphas(cell)
    if alphas is not None:
        published = [text for pair in cell for text in pair.published_nonzeros(alphas)]
        lines.append([f"{name}, paper", *published])
    return lines


def _published_alphas(cell: Sequence[_CellInPair]) -> Alphas | None:
    """Return the alphas of a cell if the paper may have them, else None.

    The paper has models whose output and attention have the same alpha. The alphas of a cell are
    known as soon as a run of any pair is done.
    """
    alphas = next((pair.row.alphas for pair in cell if pair.row.alphas), None)
    if not cell[0].matrix.paper or alphas is None or alphas.output != alphas.attention:
        return None
    return alphas


def _test_figures(jobs: Sequence[Job]) -> list[float]:
    """Return the main figures on the test set of those jobs that were measured on it."""
    figures = []
    for job in jobs:
        name = main_figure(job.matrix).name
        measurement = read_record(job.matrix).last(job.name)
        if measurement is not None and name in measurement.figures:
            figures.append(measurement.figures[name])
    return figures
