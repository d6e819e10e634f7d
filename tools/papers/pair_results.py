"""The results of a matrix of several pairs of languages as tables, beside published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.papers.held_out_record import read_record
from tools.papers.matrix import Ensemble, Job, Matrix, Training
from tools.papers.paired_tests import tests_of_pairs
from tools.papers.published import TABLE3_PAIR, Alphas, published, spread
from tools.papers.results import Row, Table, main_figure, rows_of

KINDS = ("attention_support", "output_support")  # figures of nonzeros


def several_pairs(matrices: Sequence[Matrix]) -> list[Table]:
    """Return the tables of several pairs of languages, which have the same cells.

    They are: results by cell and pair, below each cell its ensemble, test sets and paper; tests of
    each run against that of the first cell with the same seed; nonzeros of attention and output.
    """
    by_pair = [rows_of(matrix) for matrix in matrices]
    cells = [
        _CellOfPairs(matrices, rows, position)
        for position, rows in enumerate(zip(*by_pair, strict=True))
    ]
    heads = [_heading(matrix, rows) for matrix, rows in zip(matrices, by_pair, strict=True)]
    sides = [f"{matrix.pair}, {side}" for matrix in matrices for side in ("attention", "output")]
    return [
        (["cell", *heads], [line for cell in cells for line in cell.results()]),
        *tests_of_pairs(matrices),
        (["nonzeros", *sides], [line for cell in cells for line in cell.nonzeros()]),
    ]


def _heading(matrix: Matrix, rows: Sequence[Row]) -> str:
    """Return the heading of a pair's results: its name, what is measured, and how many runs."""
    counts = [len(row.singles) for row in rows]
    fewest, most = min(counts), max(counts)
    runs = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{matrix.pair}, {main_figure(matrix)[1]}, runs {runs}"


@dataclass(frozen=True)
class _CellOfPairs:
    """A cell with its figures for each pair of languages.

    Attributes:
        matrices: of the pairs.
        rows: figures of the cell, by pair.
        position: of the cell in each matrix.
    """

    matrices: Sequence[Matrix]
    rows: Sequence[Row]
    position: int

    def results(self) -> list[list[str]]:
        """Return its lines of results: runs, then test sets, ensembles and paper, if there are any.

        All but those of the paper are means over runs, with standard deviations.
        """
        figure, _ = main_figure(self.matrices[0])
        name = self.rows[0].cell.name
        lines = [[name, *(spread(row.values(figure)) for row in self.rows)]]
        ensembles = [[row.ensemble[figure]] if row.ensemble else [] for row in self.rows]
        for suffix, values in (
            ("test", [_tested(self._runs(matrix)) for matrix in self.matrices]),
            ("ensemble", ensembles),
            ("ensemble, test", [_tested(self._ensembles(matrix)) for matrix in self.matrices]),
        ):
            if any(values):
                lines.append([f"{name}, {suffix}", *map(spread, values)])
        if self._alphas is not None:
            lines.append([f"{name}, paper, tokenised", *map(self._published, self.matrices)])
        return lines

    def nonzeros(self) -> list[list[str]]:
        """Return its lines with nonzeros of attention and output: ours, and the paper's."""
        name = self.rows[0].cell.name
        lines = [[name, *(spread(row.values(kind)) for row in self.rows for kind in KINDS)]]
        if self._alphas is None:
            return lines
        of_paper = published("table3").get(self._alphas, [])
        texts: list[str] = []
        for matrix in self.matrices:
            is_published = bool(of_paper) and matrix.pair == TABLE3_PAIR
            texts += [f"{value:g}" for value in of_paper] if is_published else ["-", "-"]
        return [*lines, [f"{name}, paper", *texts]]

    @property
    def _alphas(self) -> Alphas | None:
        """Its alphas, if the paper has them: the same for output and attention."""
        alphas = next((row.alphas for row in self.rows if row.alphas), None)
        if not self.matrices[0].paper or alphas is None or alphas[0] != alphas[1]:
            return None
        return alphas

    def _runs(self, matrix: Matrix) -> list[Training]:
        """Return its trainings for a pair."""
        return [matrix.training(matrix.cells[self.position], seed) for seed in matrix.seeds]

    def _ensembles(self, matrix: Matrix) -> list[Ensemble]:
        """Return its ensemble for a pair, if the matrix has ensembles."""
        return matrix.ensembles()[self.position : self.position + 1]

    def _published(self, matrix: Matrix) -> str:
        """Return the paper's figure for a pair."""
        alphas = self._alphas
        of_pair = published(f"table2 {matrix.pair}")
        if alphas is None or alphas not in of_pair:
            return "-"
        mean, deviation = of_pair[alphas]
        return f"{mean:.2f} ± {deviation:.2f}"


def _tested(jobs: Sequence[Job]) -> list[float]:
    """Return the main figure of trainings or ensembles on the test set, of those that have one."""
    values = []
    for job in jobs:
        figure, _ = main_figure(job.matrix)
        entry = read_record(job.matrix).last(job.name)
        if entry is not None and figure in entry:
            values.append(entry[figure])
    return values
