"""What stands below the tables of results."""

from __future__ import annotations

from collections.abc import Sequence

from tools.papers.evaluation import tokenizer_of
from tools.papers.matrix import Matrix
from tools.papers.published import CERTIFICATES, TRANSFORMERS


def notes(matrices: Sequence[Matrix]) -> str:
    """Return what to know of the figures in the table of matrices, and of the paper's."""
    matrix = matrices[0]
    if matrix.pair:
        return _of_pairs(matrix)
    if matrix.paper in TRANSFORMERS:
        return (
            f"The paper's figures are tokenised BLEU of the test set {matrix.paper}, one run each "
            f"(Correia, Niculae and Martins 2019, Table 1); those here are of {matrix.source}, "
            f"with the tokeniser {tokenizer_of(matrix.cells[0])}."
        )
    text = f"Means ± standard deviations over runs, on {matrix.source}."
    if not matrix.paper:
        return text
    paper = CERTIFICATES[matrix.paper]
    return (
        f"{text} The paper's accuracies are of the test set, {matrix.paper} setting, all its "
        f"languages. Its best model, on the validation set: every possible form found (strict) for "
        f"{paper.exhaustive} % of the words, one form for {paper.single} %. "
        f"UZH (2018): {paper.submitted:.2f}."
    )


def _of_pairs(matrix: Matrix) -> str:
    """Return what to know of a table of several pairs of languages."""
    text = (
        "Means ± standard deviations over runs, on the validation sets except in rows of `test`. p "
        "is of a paired bootstrap test with 1,000 samples (Koehn 2004)."
    )
    if not matrix.paper:
        return text
    return (
        f"{text}\nThe paper's figures are tokenised BLEU of test sets, which is not the BLEU of "
        "the other rows, and nonzeros of the validation set of de-en (Peters, Niculae and Martins "
        "2019, Tables 2 and 3). Nonzeros here are of all prefixes that were searched."
    )
