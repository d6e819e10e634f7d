"""Tables of matrices: results beside the paper's, in Markdown and LaTeX, and progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps, read_best
from onmt_entmax.experiment.held_out import measurements
from onmt_entmax.experiment.matrix import Cell, Matrix, Training, Work
from onmt_entmax.experiment.measures import compared_bleu, figures_of, last_measurement
from onmt_entmax.locks import is_locked
from onmt_entmax.nn.transformer import LEARNED
from onmt_entmax.report.tables import aligned_table, markdown_table

# Published results by (output alpha, attention alpha). Peters, Niculae and Martins (2019), Table 1:
# test accuracy in percent, mean of three runs, and their ensemble.
PAPER: dict[str, dict[tuple[float, float | str], tuple[float, ...]]] = {
    "high": {
        (1, 1): (93.15, 94.20),
        (1, 1.5): (92.32, 93.50),
        (1, 2): (90.98, 92.60),
        (1.5, 1): (94.36, 94.96),
        (1.5, 1.5): (94.44, 95.00),
        (1.5, 2): (94.05, 94.74),
        (2, 1): (94.59, 95.10),
        (2, 1.5): (94.47, 95.01),
        (2, 2): (94.32, 94.89),
    },
    "medium": {
        (1, 1): (82.55, 85.68),
        (1, 1.5): (83.20, 85.63),
        (1, 2): (83.13, 85.65),
        (1.5, 1): (84.88, 86.38),
        (1.5, 1.5): (84.93, 86.55),
        (1.5, 2): (84.93, 86.59),
        (2, 1): (84.95, 86.41),
        (2, 1.5): (85.03, 86.61),
        (2, 2): (84.96, 86.47),
    },
}
# Correia, Niculae and Martins (2019), Table 1: tokenised BLEU of the test set, one run each, with
# softmax, 1.5-entmax and learned alphas in all attention.
_BLEU: dict[str, tuple[float, float, float]] = {
    "de-en": (29.79, 29.83, 29.90),
    "ja-en": (21.57, 22.13, 21.74),
    "ro-en": (32.70, 33.10, 32.89),
    "en-de": (26.02, 25.89, 26.93),
}
PAPER |= {
    pair: {(1, 1): (softmax,), (1, 1.5): (entmax15,), (1, LEARNED): (learned,)}
    for pair, (softmax, entmax15, learned) in _BLEU.items()
}
# Peters, Niculae and Martins (2019), Table 2: tokenised BLEU of the test set with the same alpha in
# attention and output, mean and standard deviation of three runs.
TABLE2: dict[str, dict[float, tuple[float, float]]] = {
    "de-en": {1: (25.70, 0.15), 1.5: (26.17, 0.13), 2: (24.69, 0.22)},
    "en-de": {1: (21.86, 0.09), 1.5: (22.42, 0.08), 2: (20.82, 0.19)},
    "ja-en": {1: (20.22, 0.08), 1.5: (20.55, 0.30), 2: (18.54, 0.11)},
    "en-ja": {1: (25.21, 0.29), 1.5: (26.00, 0.31), 2: (23.84, 0.37)},
    "ro-en": {1: (29.12, 0.18), 1.5: (30.15, 0.06), 2: (29.20, 0.16)},
    "en-ro": {1: (28.12, 0.18), 1.5: (28.84, 0.10), 2: (28.03, 0.16)},
}
# Table 3: nonzeros of attention and output on the validation set of de-en.
TABLE3: dict[float, tuple[float, float]] = {1: (24.25, 17993), 1.5: (5.55, 16.13), 2: (3.75, 7.55)}
PAPERS_OF_PAIRS = ("table2",)
# Peters, Niculae and Martins (2019), section 4.1, validation set, best configuration: percent of
# the words for which every possible form was found, and of those with a single form.
PAPER_CERTIFICATES = {"high": (87, 81), "medium": (79, 66)}
# Headings of further figures of single runs.
RATES = {
    "exhaustive": "exhaustive %",
    "exhaustive_strict": "strict %",
    "optimal": "proven %",
    "one_string": "unique %",
    "output_support": "output nonzeros",
    "attention_support": "attention nonzeros",
}


@dataclass(frozen=True)
class Row:
    """The figures of a cell.

    Attributes:
        cell: the cell.
        singles: the figures of each run that is done.
        ensemble: the figures of its ensemble, if done.
    """

    cell: Cell
    singles: list[dict[str, Any]]
    ensemble: dict[str, Any] | None

    @property
    def alphas(self) -> tuple[float, float | str] | None:
        """Alphas of the output and of the attention to the source; None before a run is done."""
        if not self.singles:
            return None
        return self.singles[0]["output_alpha"], self.singles[0]["attention_alpha"]

    def values(self, name: str) -> list[float]:
        """Return a figure of the runs that have it."""
        return [figures[name] for figures in self.singles if name in figures]


def rows_of(matrix: Matrix) -> list[Row]:
    """Return the figures of every cell."""
    together = {ensemble.cell.name: figures_of(ensemble) for ensemble in matrix.ensembles()}
    found = []
    for cell in matrix.cells:
        singles = [figures_of(matrix.training(cell, seed)) for seed in matrix.seeds]
        done = [figures for figures in singles if figures]
        found.append(Row(cell, done, together.get(cell.name)))
    return found


def main_figure(matrix: Matrix) -> tuple[str, str]:
    """Return name and heading of the figure by which cells are compared."""
    return ("bleu", "BLEU") if matrix.evaluate == "bleu" else ("accuracy", "accuracy")


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return the mean, with the standard deviation of several values."""
    if not values:
        return "-"
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation}"


def cells_of_table(matrix: Matrix, rows: Sequence[Row]) -> Table:
    """Return the headings and rows of the results."""
    figure, title = main_figure(matrix)
    shown = {name: title for name, title in RATES.items() if any(r.values(name) for r in rows)}
    paper = PAPER.get(matrix.paper) if matrix.paper else None
    headings = ["cell", "output α", "attention α"]
    published = len(next(iter(paper.values()))) if paper else 0
    headings += ["paper", "paper, ens."][:published]
    headings += [title, "runs"] + ([f"{title}, ens."] if matrix.ensembles() else [])
    lines = []
    for row in rows:
        line = [row.cell.name, *(a if isinstance(a, str) else f"{a:g}" for a in row.alphas or ())]
        line += ["-"] * (3 - len(line))
        if paper:
            values = paper.get(row.alphas) if row.alphas else None
            line += [f"{value:.2f}" for value in values] if values else ["-"] * published
        line += [spread(row.values(figure)), str(len(row.singles))]
        if matrix.ensembles():
            line.append(f"{row.ensemble[figure]:.2f}" if row.ensemble else "-")
        line += [spread(row.values(name)) for name in shown]
        lines.append(line)
    return [*headings, *shown.values()], lines


def differences(rows: Sequence[Row], figure: str) -> list[list[str]]:
    """Compare each cell with the first: difference of means, its standard error, separation.

    Separation is whether all runs of one cell are better than all of the other, which has a
    probability of 1 in 10 by chance with 3 runs each.
    """
    first, lines = rows[0].values(figure), []
    for row in rows[1:]:
        values = row.values(figure)
        if len(values) < 2 or len(first) < 2:
            continue
        error = sqrt(stdev(values) ** 2 / len(values) + stdev(first) ** 2 / len(first))
        apart = min(values) > max(first) or max(values) < min(first)
        difference = mean(values) - mean(first)
        lines.append(
            [row.cell.name, f"{difference:+.2f}", f"{error:.2f}", "yes" if apart else "no"]
        )
    return lines


Table = tuple[list[str], list[list[str]]]  # headings, rows


def markdown(matrices: Sequence[Matrix]) -> str:
    """Return the results as Markdown."""
    tables = _tables_of_pairs(matrices) if matrices[0].pair else _tables(matrices[0])
    texts = [markdown_table(headings, lines) for headings, lines in tables]
    return "\n\n".join([*texts, *_notes(matrices)])


def latex(matrices: Sequence[Matrix]) -> str:
    """Return the results as LaTeX tabulars, which need the package booktabs."""
    tables = _tables_of_pairs(matrices) if matrices[0].pair else _tables(matrices[0])[:1]
    return "\n\n".join(_latex_table(*table) for table in tables)


def _tables(matrix: Matrix) -> list[Table]:
    """Return the tables of one matrix: results, and comparisons with the first cell."""
    rows = rows_of(matrix)
    compared = differences(rows, main_figure(matrix)[0])
    against = [f"against {rows[0].cell.name}", "difference", "standard error", "all runs apart"]
    return [cells_of_table(matrix, rows), *([(against, compared)] if compared else [])]


def _tables_of_pairs(matrices: Sequence[Matrix]) -> list[Table]:
    """Return the tables of several pairs of languages.

    They are: results, by cell and pair; tests of each run against that of the first cell with the
    same seed; and nonzeros of attention and output.
    """
    rows = [rows_of(matrix) for matrix in matrices]
    return [
        _results_of_pairs(matrices, rows),
        *_tests(matrices),
        _nonzeros_of_pairs(matrices, rows),
    ]


def _results_of_pairs(matrices: Sequence[Matrix], rows: Sequence[Sequence[Row]]) -> Table:
    """Return the results by cell and pair; below each cell, its ensemble, test sets and paper.

    Args:
        matrices: of the pairs, with the same cells.
        rows: of each matrix.
    """
    figure, title = main_figure(matrices[0])
    lines = []
    for number, cell in enumerate(matrices[0].cells):
        of_cell = [each[number] for each in rows]
        trainings = [[m.training(m.cells[number], seed) for seed in m.seeds] for m in matrices]
        ensembles = [matrix.ensembles()[number : number + 1] for matrix in matrices]
        found = {
            cell.name: [row.values(figure) for row in of_cell],
            f"{cell.name}, test": _tested(matrices, trainings, figure),
            f"{cell.name}, ensemble": [
                [row.ensemble[figure]] if row.ensemble else [] for row in of_cell
            ],
            f"{cell.name}, ensemble, test": _tested(matrices, ensembles, figure),
        }
        for name, values in found.items():
            if name == cell.name or any(values):
                lines.append([name, *map(spread, values)])
        alpha = _only_alpha(of_cell)
        if matrices[0].paper and alpha is not None:
            published = [TABLE2.get(matrix.pair, {}).get(alpha) for matrix in matrices]
            texts = [f"{p[0]:.2f} ± {p[1]:.2f}" if p else "-" for p in published]
            lines.append([f"{cell.name}, paper", *texts])
    pairs = zip(matrices, rows, strict=True)
    return [title, *(f"{matrix.pair}, runs {_runs(each)}" for matrix, each in pairs)], lines


def _nonzeros_of_pairs(matrices: Sequence[Matrix], rows: Sequence[Sequence[Row]]) -> Table:
    """Return the nonzeros of attention and output by cell and pair; below each cell, the paper's.

    Args:
        matrices: of the pairs, with the same cells.
        rows: of each matrix.
    """
    kinds, lines = ("attention", "output"), []
    for number, cell in enumerate(matrices[0].cells):
        of_cell = [each[number] for each in rows]
        means = (spread(row.values(f"{kind}_support")) for row in of_cell for kind in kinds)
        lines.append([cell.name, *means])
        paper = TABLE3.get(_only_alpha(of_cell) or 0) if matrices[0].paper else None
        if paper and any(matrix.pair == "de-en" for matrix in matrices):
            texts = (f"{n:g}" if m.pair == "de-en" else "-" for m in matrices for n in paper)
            lines.append([f"{cell.name}, paper", *texts])
    return ["nonzeros", *(f"{matrix.pair}, {kind}" for matrix in matrices for kind in kinds)], lines


def _only_alpha(rows: Sequence[Row]) -> float | None:
    """Return the alpha of both attention and output; None if they differ or no run is done."""
    alphas = {row.alphas for row in rows if row.alphas}
    return next((float(a) for a, b in alphas if a == b), None)


def _tested(
    matrices: Sequence[Matrix], works: Sequence[Sequence[Work]], figure: str
) -> list[list[float]]:
    """Return for each matrix the last measurements of the test set by its works that have one."""
    values = []
    for matrix, own in zip(matrices, works, strict=True):
        found = {entry["name"]: entry[figure] for entry in measurements(matrix) if figure in entry}
        values.append([found[work.name] for work in own if work.name in found])
    return values


def _runs(rows: Sequence[Row]) -> str:
    """Return how many runs of each cell are done."""
    counts = sorted({len(row.singles) for row in rows})
    return " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))


def _tests(matrices: Sequence[Matrix]) -> list[Table]:
    """Compare the translations of each cell with those of the first, seed by seed."""
    first, *others = (cell.name for cell in matrices[0].cells)
    lines = []
    for matrix in matrices:
        if matrix.evaluate != "bleu":
            continue
        for seed in matrix.seeds:
            trainings = [matrix.training(cell, seed) for cell in matrix.cells]
            done = [training for training in trainings if figures_of(training)]
            if len(done) < 2 or done[0] is not trainings[0]:
                continue
            tested = dict(zip((t.cell.name for t in done[1:]), compared_bleu(done), strict=True))
            texts = [
                f"{tested[name][0]:+.2f} (p {tested[name][1]:.3f})" if name in tested else "-"
                for name in others
            ]
            lines.append([matrix.pair, str(seed), *texts])
    return [([f"against {first}", "seed", *others], lines)] if lines else []


def _notes(matrices: Sequence[Matrix]) -> list[str]:
    """Return what to know of the paper's figures and of these."""
    matrix = matrices[0]
    if matrix.pair:
        notes = [
            "Means ± standard deviations over runs, on the validation sets except in rows of "
            "`test`. p is of a paired bootstrap test with 1,000 samples (Koehn 2004)."
        ]
        if matrix.paper:
            notes.append(
                "The paper's figures are tokenised BLEU of test sets, and nonzeros of the "
                "validation set of de-en (Peters, Niculae and Martins 2019, Tables 2 and 3). "
                "Nonzeros here are of all prefixes that were searched."
            )
        return ["\n".join(notes)]
    if matrix.paper in _BLEU:
        return [
            f"The paper's figures are tokenised BLEU of the test set {matrix.paper}, one run each "
            f"(Correia, Niculae and Martins 2019, Table 1); those here are of {matrix.source}."
        ]
    if not matrix.paper:
        return []
    exhaustive, single = PAPER_CERTIFICATES[matrix.paper]
    return [
        f"The paper's figures are of the test set, {matrix.paper} setting, all its languages; "
        f"those here are of {matrix.source}. Its best model: every possible form found for "
        f"{exhaustive} % of the words, one form for {single} %. UZH (2018): "
        f"{'96.00' if matrix.paper == 'high' else '86.64'}."
    ]


def _latex_table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        text = " & ".join(cells).replace("%", r"\%").replace("_", r"\_")
        return text.replace("±", r"$\pm$").replace("α", r"$\alpha$") + r" \\"

    body = [r"\toprule", line(headings), r"\midrule", *map(line, lines), r"\bottomrule"]
    columns = "l" + "r" * (len(headings) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def status(matrices: Sequence[Matrix]) -> str:
    """Return the progress of every run and ensemble as an aligned table."""
    lines = [["run", "state", "step", "best", "at", "result"]]
    for matrix in matrices:
        lines += [_training_status(training) for training in matrix.trainings()]
        for ensemble in matrix.ensembles():
            figures = figures_of(ensemble)
            state = "done" if figures else "running" if is_locked(ensemble.folder) else "waiting"
            result = f"{next(iter(figures.values())):.2f}" if figures else ""
            lines.append([ensemble.name, state, "", "", "", result])
    return aligned_table(lines, left=2)


def _training_status(training: Training) -> list[str]:
    figures = figures_of(training)
    if is_locked(training.folder):
        state = "running"
    elif figures:
        state = "done"
    else:
        state = "stopped" if checkpoint_steps(training.run) else "waiting"
    step = str(last_measurement(training.run).get("step", ""))
    best = read_best(training.run)
    value, at = (f"{best['metric']} {best['value']:.4g}", str(best["step"])) if best else ("", "")
    result = f"{next(iter(figures.values())):.2f}" if figures else ""
    return [training.name, state, step, value, at, result]


def measured_runs(matrices: Sequence[Matrix]) -> tuple[list[Path], list[str]]:
    """Return folders and names of the first run of each cell that has measured something."""
    found = {}
    for matrix in matrices:
        for cell in matrix.cells:
            name = f"{matrix.pair} {cell.name}".lstrip()
            for training in (matrix.training(cell, seed) for seed in matrix.seeds):
                if name not in found and last_measurement(training.run):
                    found[name] = training.run
    return list(found.values()), list(found)
