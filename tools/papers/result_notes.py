"""Notes below the tables of results: on which data ours and the paper's figures were measured.

`tables.py` prints them below the Markdown tables of a matrix file.
"""

from __future__ import annotations

from tools.papers.evaluation import tokenizer_of
from tools.papers.matrix import Matrix
from tools.papers.paired_tests import SAMPLES
from tools.papers.published import CERTIFICATES, TRANSFORMERS


def notes(matrix: Matrix) -> str:
    """Return the notes of a matrix.

    Args:
        matrix: any one, if the file has several pairs of languages: these differ only in texts,
            which the notes on pairs do not name.
    """
    if matrix.pair:
        return _notes_on_pairs(matrix)
    if matrix.paper in TRANSFORMERS:
        return _notes_on_transformers(matrix)
    return _notes_on_one_text(matrix)


def _notes_on_pairs(matrix: Matrix) -> str:
    """Return the notes of several pairs of languages, beside Peters et al. (2019) or no paper."""
    text = (
        "Means ± standard deviations over runs, on the validation sets except in rows of `test`. p "
        f"is of a paired bootstrap test with {SAMPLES:,} samples (Koehn 2004)."
    )
    if not matrix.paper:
        return text
    return (
        f"{text}\nThe paper's figures are tokenised BLEU of test sets, which is not the BLEU of "
        "the other rows, and nonzeros of the validation set of de-en (Peters, Niculae and Martins "
        "2019, Tables 2 and 3). Nonzeros here are of all prefixes that were searched."
    )


def _notes_on_transformers(matrix: Matrix) -> str:
    """Return the notes of Transformers, beside those of Correia et al. (2019)."""
    return (
        f"The paper's figures are tokenised BLEU of the test set {matrix.paper}, one run each "
        f"(Correia, Niculae and Martins 2019, Table 1); those here are of {matrix.source}, "
        f"with the tokeniser {tokenizer_of(matrix.cells[0])}."
    )


def _notes_on_one_text(matrix: Matrix) -> str:
    """Return the notes of any other matrix: inflection beside Peters et al. (2019), or no paper."""
    text = f"Means ± standard deviations over runs, on {matrix.source}."
    if not matrix.paper:
        return text
    paper = CERTIFICATES[matrix.paper]
    return (
        f"{text} The paper's accuracies are of the test set, {matrix.paper} setting, all its "
        f"languages. Its best model, on the validation set: every possible form found (strict) for "
        f"{paper.exhaustive} % of the words, one form for {paper.single} %. "
        f"UZH (2018): {paper.submitted:.2f}."  # the best submission to the shared task
    )
