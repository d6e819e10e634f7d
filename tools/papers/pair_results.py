"""The results of a matrix of several pairs of languages as tables, beside published ones."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics import BLEU

from onmt_entmax.report.system_comparison import compare
from tools.papers.evaluation import figures_of, texts_of, tokenizer_of
from tools.papers.held_out import read_record
from tools.papers.matrix import Matrix
from tools.papers.published import Alphas, published, spread
from tools.papers.results import Row, Table, main_figure, rows_of


def several_pairs(matrices: Sequence[Matrix]) -> list[Table]:
    """Return the tables of several pairs of languages, which have the same cells.

    They are: results by cell and pair, below each cell its ensemble, test sets and paper; tests of
    each run against that of the first cell with the same seed; nonzeros of attention and output.
    """
    by_matrix = [rows_of(matrix) for matrix in matrices]
    results = []
    nonzeros = []
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
    figure, _ = main_figure(matrices[0])
    name = rows[0].cell.name
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
    name = rows[0].cell.name
    kinds = ("attention_support", "output_support")
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
    if matrices[0].evaluate != "bleu":  # the same for all pairs
        return []
    first, *others = (cell.name for cell in matrices[0].cells)
    lines = []
    for matrix in matrices:
        for seed in matrix.seeds:
            cells = _differences(matrix, seed)
            if cells:
                lines.append([matrix.pair, str(seed), *(cells.get(name, "-") for name in others)])
    return [([f"against {first}", "seed", *others], lines)] if lines else []


def _differences(matrix: Matrix, seed: int) -> dict[str, str]:
    """Return by cell its difference in BLEU to the first one, with its p-value.

    It is empty if the first cell, or all others, are not done with this seed.
    """
    trainings = [matrix.training(cell, seed) for cell in matrix.cells]
    done = [training for training in trainings if figures_of(training)]
    if len(done) < 2 or done[0] is not trainings[0]:
        return {}
    texts = [texts_of(training) for training in done]
    metric = BLEU(tokenize=tokenizer_of(done[0].cell), force=True)
    references = texts[0][1]
    systems = [(str(i), predictions) for i, (_, _, predictions) in enumerate(texts)]
    (measured,) = compare(systems, [references], [("BLEU", metric)], resamples=1000)
    base = measured.scores[0].value
    return {
        training.cell.name: f"{score.value - base:+.2f} (p {score.p_value:.3f})"
        for training, score in zip(done, measured.scores, strict=True)
        if score.p_value is not None
    }
