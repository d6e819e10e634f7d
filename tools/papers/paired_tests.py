"""Paired bootstrap tests of translations against those of the first cell (Koehn 2004)."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics import BLEU

from onmt_entmax.report.sacrebleu_metrics import NamedMetric
from onmt_entmax.report.system_comparison import System, compare
from tools.papers.evaluation import texts_of, tokenizer_of
from tools.papers.job_figures import figures_of
from tools.papers.matrix import Matrix
from tools.papers.results import NOTHING
from tools.papers.text_table import Table

SAMPLES = 1000  # bootstrap samples of a test


def tests_of_pairs(matrices: Sequence[Matrix]) -> Table | None:
    """Return a table of BLEU differences from the first cell, or None if nothing can be compared.

    The table has a line for each pair of languages and seed, and a column for each other cell. Only
    matrices that are evaluated by BLEU have one.

    Args:
        matrices: one for each pair, all with the same cells.

    Raises:
        UserError: a training has other options than its matrix, or a file is missing or damaged.
    """
    if matrices[0].evaluate != "bleu":
        return None
    first, *others = (cell.name for cell in matrices[0].cells)
    lines = []
    for matrix in matrices:
        for seed in matrix.seeds:
            differences = _differences(matrix, seed)
            if differences:
                cells = [differences.get(name, NOTHING) for name in others]
                lines.append([matrix.pair, str(seed), *cells])
    return Table([f"against {first}", "seed", *others], lines) if lines else None


def _differences(matrix: Matrix, seed: int) -> dict[str, str]:
    """Return the difference in BLEU of each other cell from the first one, with its p-value.

    Cells whose training with this seed is not done are left out; without the first cell, all are.

    Raises:
        UserError: a training has other options than its matrix, or a file is missing or damaged.
    """
    trainings = [matrix.training(cell, seed) for cell in matrix.cells]
    first, *others = trainings
    others = [training for training in others if figures_of(training) is not None]
    if figures_of(first) is None or not others:
        return {}
    texts = [texts_of(training) for training in (first, *others)]
    systems = [
        System(training.name, text.predictions)
        for training, text in zip((first, *others), texts, strict=True)
    ]
    metric = BLEU(tokenize=tokenizer_of(first.cell), force=True)
    (bleu,) = compare(
        systems, [texts[0].references], [NamedMetric("BLEU", metric)], resamples=SAMPLES
    )
    base = bleu.scores[first.name].value
    differences = {}
    for training in others:
        score = bleu.scores[training.name]
        differences[training.cell.name] = f"{score.value - base:+.2f} (p {score.p_value:.3f})"
    return differences
