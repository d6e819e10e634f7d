"""Paired bootstrap tests of translations against those of the first cell (Koehn 2004)."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics import BLEU

from onmt_entmax.report.system_comparison import compare
from tools.papers.evaluation import texts_of, tokenizer_of
from tools.papers.job_figures import figures_of
from tools.papers.matrix import Matrix
from tools.papers.results import Table

SAMPLES = 1000  # bootstrap samples of a test


def tests_of_pairs(matrices: Sequence[Matrix]) -> list[Table]:
    """Return a table with each cell's difference in BLEU to the first one, pair by pair and seed.

    It is left out if nothing can be compared, or BLEU is not how the pairs are evaluated.

    Args:
        matrices: of the pairs, which have the same cells.
    """
    if matrices[0].evaluate != "bleu":
        return []
    first, *others = (cell.name for cell in matrices[0].cells)
    lines = []
    for matrix in matrices:
        for seed in matrix.seeds:
            differences = _differences(matrix, seed)
            if differences:
                cells = [differences.get(name, "-") for name in others]
                lines.append([matrix.pair, str(seed), *cells])
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
    systems = [
        (training.name, text.predictions) for training, text in zip(done, texts, strict=True)
    ]
    metric = BLEU(tokenize=tokenizer_of(done[0].cell), force=True)
    (measured,) = compare(systems, [texts[0].references], [("BLEU", metric)], resamples=SAMPLES)
    base, *_ = measured.scores.values()  # that of the first cell, without a p-value
    return {
        training.cell.name: f"{score.value - base.value:+.2f} (p {score.p_value:.3f})"
        for training, score in zip(done, measured.scores.values(), strict=True)
        if score.p_value is not None
    }
