"""The utilities of minimum Bayes risk, by definition or by another library, text by text."""

from collections import Counter

from sacrebleu.metrics import CHRF

from onmt_entmax.search.utilities import Utility
from tests.edit_distance import edit_distance

CHRF_ORDERS = range(1, 7)  # lengths of its n-grams, in characters


def compared_parts(utility: Utility, text: str) -> object:
    """Return what a utility compares: texts whose parts are equal have utility 1."""
    if utility == "exact_match":
        return text
    if utility == "edit_distance":
        return text.split()
    assert utility == "chrf"
    letters = "".join(text.split())
    return [
        Counter(letters[start : start + n] for start in range(len(letters) - n + 1))
        for n in CHRF_ORDERS
    ]


def edit_similarity(first: str, second: str) -> float:
    """Return 1 - edit distance / length of the longer text, in tokens."""
    longer = max(len(first.split()), len(second.split()), 1)
    return 1 - edit_distance(first.split(), second.split()) / longer


def sacrebleu_chrf(first: str, second: str) -> float:
    """Return sacrebleu's sentence chrF, from 0 to 1.

    Two empty texts have 1 here, since they are equal; sacrebleu returns 0.
    """
    if not first.strip() and not second.strip():
        return 1.0
    return CHRF().sentence_score(first, [second]).score / 100
