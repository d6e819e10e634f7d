"""The results of matrices as tables, beside published ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU

from onmt_entmax.report.bleu import compare
from tools.papers.evaluation import EVALUATE, REPORT_FIGURES, figures_of, texts_of, tokenizer_of
from tools.papers.held_out import read_record
from tools.papers.matrix import Cell, Matrix
from tools.papers.published import CERTIFICATES, TRANSFORMERS, Alphas, published, spread


class Row(NamedTuple):
    """The figures of a cell: of each run that is done, and of its ensemble, if done."""

    cell: Cell
    singles: list[dict[str, Any]]
    ensemble: dict[str, Any] | None

    @property
    def alphas(self) -> Alphas | None:
        """Alphas of the output and of the attention to the source; None before a run is done."""
        if not self.singles:
            return None
        return self.singles[0]["output_alpha"], self.singles[0]["attention_alpha"]

    def values(self, name: str) -> list[float]:
        """Return a figure of the runs that have it."""
        return [figures[name] for figures in self.singles if name in figures]


Table = tuple[list[str], list[list[str]]]  # headings, rows


def rows_of(matrix: Matrix) -> list[Row]:
    """Return the figures of every cell."""
    ensembles = {ensemble.cell.name: figures_of(ensemble) for ensemble in matrix.ensembles()}
    rows = []
    for cell in matrix.cells:
        singles = [figures_of(matrix.training(cell, seed)) for seed in matrix.seeds]
        done = [figures for figures in singles if figures]
        rows.append(Row(cell, done, ensembles.get(cell.name)))
    return rows


def main_figure(matrix: Matrix) -> tuple[str, str]:
    """Return name and heading of the figure by which cells are compared."""
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
    further = {  # headings of figures of the report that a run has
        name: heading
        for name, (_, heading) in REPORT_FIGURES.items()
        if heading and any(row.values(name) for row in rows)
    }
    paper = published(matrix.paper)
    columns = len(next(iter(paper.values()), ()))
    tokenised = "paper, tokenised" if matrix.paper in TRANSFORMERS else "paper"
    head = ["cell", "output α", "attention α", *[tokenised, "paper, ens."][:columns], title, "runs"]
    if matrix.ensembles():
        head.append(f"{title}, ens.")
    lines = []
    for row in rows:
        values, line = row.values(figure), [row.cell.name]
        if row.alphas is None:
            line += ["-", "-"]
        else:
            line += [alpha if isinstance(alpha, str) else f"{alpha:g}" for alpha in row.alphas]
        of_paper = paper.get(row.alphas, []) if row.alphas is not None else []
        line += [f"{value:.2f}" for value in of_paper] or ["-"] * columns
        line += [spread(values), str(len(values))]
        if matrix.ensembles():
            line.append(f"{row.ensemble[figure]:.2f}" if row.ensemble else "-")
        lines.append([*line, *(spread(row.values(name)) for name in further)])
    return [*head, *further.values()], lines


def _comparisons(matrix: Matrix, rows: Sequence[Row]) -> list[Table]:
    """Return the differences of cells to the first, if several runs of both are done.

    All runs are apart if those of one cell are better than all of the other, which has a
    probability of 1 in 10 by chance with 3 runs each.
    """
    figure, _ = main_figure(matrix)
    first, lines = rows[0].values(figure), []
    for row in rows[1:]:
        values = row.values(figure)
        if len(values) > 1 and len(first) > 1:
            error = sqrt(stdev(values) ** 2 / len(values) + stdev(first) ** 2 / len(first))
            apart = min(values) > max(first) or max(values) < min(first)
            difference = f"{mean(values) - mean(first):+.2f}"
            lines.append([row.cell.name, difference, f"{error:.2f}", "yes" if apart else "no"])
    head = [f"against {rows[0].cell.name}", "difference", "standard error", "all runs apart"]
    return [(head, lines)] if lines else []


def several_pairs(matrices: Sequence[Matrix]) -> list[Table]:
    """Return the tables of several pairs of languages, which have the same cells.

    They are: results by cell and pair, below each cell its ensemble, test sets and paper; tests of
    each run against that of the first cell with the same seed; nonzeros of attention and output.
    """
    by_matrix = [rows_of(matrix) for matrix in matrices]
    results, nonzeros = [], []
    for number in range(len(matrices[0].cells)):
        rows = [of_matrix[number] for of_matrix in by_matrix]
        results += _results_of_pairs(matrices, rows, number)
        nonzeros += _nonzeros_of_pairs(matrices, rows)
    heads = []
    for matrix, of_matrix in zip(matrices, by_matrix, strict=True):
        counts = [len(row.singles) for row in of_matrix]
        runs = " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))
        heads.append(f"{matrix.pair}, {main_figure(matrix)[1]}, runs {runs}")
    sides = [f"{matrix.pair}, {side}" for matrix in matrices for side in ("attention", "output")]
    return [
        (["cell", *heads], results),
        *_bootstrap(matrices),
        (["nonzeros", *sides], nonzeros),
    ]


def _alphas_of(matrices: Sequence[Matrix], rows: Sequence[Row]) -> Alphas | None:
    """Return the alphas of a cell that the paper has: the same for output and attention."""
    alphas = next((row.alphas for row in rows if row.alphas), None)
    if not matrices[0].paper or alphas is None or alphas[0] != alphas[1]:
        return None
    return alphas


def _results_of_pairs(
    matrices: Sequence[Matrix], rows: Sequence[Row], number: int
) -> list[list[str]]:
    """Return the lines of a cell: its runs, then test sets, ensembles and paper, if there are any.

    Args:
        matrices: of the pairs.
        rows: figures of the cell for each pair.
        number: position of the cell.
    """
    (figure, _), name = main_figure(matrices[0]), rows[0].cell.name
    on_test: list[list[float]] = []
    ensembles_on_test: list[list[float]] = []
    for matrix in matrices:
        entries = read_record(matrix).measurements
        tested_figures = {entry["name"]: entry[figure] for entry in entries if figure in entry}
        runs = [matrix.training(matrix.cells[number], seed) for seed in matrix.seeds]
        ensembles = matrix.ensembles()[number : number + 1]
        for works, column in ((runs, on_test), (ensembles, ensembles_on_test)):
            names = [work.name for work in works]
            column.append([tested_figures[name] for name in names if name in tested_figures])
    lines = [[name, *(spread(row.values(figure)) for row in rows)]]
    for suffix, values in (
        ("test", on_test),
        ("ensemble", [[row.ensemble[figure]] if row.ensemble else [] for row in rows]),
        ("ensemble, test", ensembles_on_test),
    ):
        if any(values):
            lines.append([f"{name}, {suffix}", *map(spread, values)])
    alphas = _alphas_of(matrices, rows)
    if alphas is not None:
        of_paper = [published(f"table2 {matrix.pair}").get(alphas) for matrix in matrices]
        texts = ["-" if pair is None else f"{pair[0]:.2f} ± {pair[1]:.2f}" for pair in of_paper]
        lines.append([f"{name}, paper, tokenised", *texts])
    return lines


def _nonzeros_of_pairs(matrices: Sequence[Matrix], rows: Sequence[Row]) -> list[list[str]]:
    """Return the lines of a cell with nonzeros of attention and output: ours, and the paper's."""
    name, kinds = rows[0].cell.name, ("attention_support", "output_support")
    lines = [[name, *(spread(row.values(kind)) for row in rows for kind in kinds)]]
    alphas = _alphas_of(matrices, rows)
    if alphas is not None:
        of_paper = published("table3").get(alphas)  # of one pair
        texts: list[str] = []
        for matrix in matrices:
            has_figures = of_paper is not None and matrix.pair == "de-en"
            texts += [f"{value:g}" for value in of_paper or ()] if has_figures else ["-", "-"]
        lines.append([f"{name}, paper", *texts])
    return lines


def _bootstrap(matrices: Sequence[Matrix]) -> list[Table]:
    """Compare the translations of each cell with those of the first, seed by seed (Koehn 2004)."""
    first, *others = (cell.name for cell in matrices[0].cells)
    lines = []
    if matrices[0].evaluate != "bleu":  # the same for all pairs
        return []
    for matrix in matrices:
        for seed in matrix.seeds:
            trainings = [matrix.training(cell, seed) for cell in matrix.cells]
            done = [training for training in trainings if figures_of(training)]
            if len(done) < 2 or done[0] is not trainings[0]:
                continue
            texts = [texts_of(training) for training in done]
            metric = BLEU(tokenize=tokenizer_of(done[0].cell), force=True)
            references = texts[0][1]
            systems = [(str(i), predictions) for i, (_, _, predictions) in enumerate(texts)]
            (measured,) = compare(systems, [references], [("BLEU", metric)], resamples=1000)
            base = measured.scores[0].value
            cells = {
                training.cell.name: f"{score.value - base:+.2f} (p {score.p_value:.3f})"
                for training, score in zip(done, measured.scores, strict=True)
                if score.p_value is not None
            }
            lines.append([matrix.pair, str(seed), *(cells.get(name, "-") for name in others)])
    return [([f"against {first}", "seed", *others], lines)] if lines else []


def notes(matrices: Sequence[Matrix]) -> list[str]:
    """Return what to know of the paper's figures and of these."""
    matrix = matrices[0]
    if matrix.pair:
        text = (
            "Means ± standard deviations over runs, on the validation sets except in rows of "
            "`test`. p is of a paired bootstrap test with 1,000 samples (Koehn 2004)."
        )
        if matrix.paper:
            text += (
                "\nThe paper's figures are tokenised BLEU of test sets, which is not the BLEU of "
                "the other rows, and nonzeros of the validation set of de-en (Peters, Niculae and "
                "Martins 2019, Tables 2 and 3). Nonzeros here are of all prefixes that were "
                "searched."
            )
        return [text]
    if matrix.paper in TRANSFORMERS:
        return [
            f"The paper's figures are tokenised BLEU of the test set {matrix.paper}, one run each "
            f"(Correia, Niculae and Martins 2019, Table 1); those here are of {matrix.source}, "
            f"with the tokeniser {tokenizer_of(matrix.cells[0])}."
        ]
    text = f"Means ± standard deviations over runs, on {matrix.source}."
    if not matrix.paper:
        return [text]
    exhaustive, single, submitted = CERTIFICATES[matrix.paper]
    return [
        f"{text} The paper's accuracies are of the test set, {matrix.paper} setting, all its "
        f"languages. Its best model, on the validation set: every possible form found (strict) for "
        f"{exhaustive} % of the words, one form for {single} %. UZH (2018): {submitted}."
    ]


def latex_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a LaTeX tabular, which needs the package booktabs."""
    rows = [_latex_row(line) for line in lines]
    body = [r"\toprule", _latex_row(head), r"\midrule", *rows, r"\bottomrule"]
    columns = "l" + "r" * (len(head) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def _latex_row(cells: Sequence[str]) -> str:
    """Return a row of a tabular, with the signs that mean something in LaTeX escaped."""
    text = " & ".join(cells).replace("%", r"\%").replace("_", r"\_")
    return text.replace("±", r"$\pm$").replace("α", r"$\alpha$") + r" \\"
