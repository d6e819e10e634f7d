"""Utilities of minimum Bayes risk by definition."""

from collections import Counter

from sacrebleu.metrics import CHRF

from tests.oracles import edit_distance


def compared_parts(utility: str, text: str) -> object:
    """Return what a utility compares; of equal parts, texts have utility 1."""
    if utility == "exact_match":
        return text
    if utility == "edit_distance":
        return text.split()
    letters = "".join(text.split())
    return [Counter(letters[i : i + n] for i in range(len(letters) - n + 1)) for n in range(1, 7)]


def edit_similarity(first: str, second: str) -> float:
    """Return 1 - edit distance / length of the longer text, in tokens."""
    longer = max(len(first.split()), len(second.split()), 1)
    return 1 - edit_distance(first.split(), second.split()) / longer


def sacrebleu_chrf(first: str, second: str) -> float:
    """Return sacrebleu's sentence chrF; of two empty texts 1, for which sacrebleu has 0."""
    if not first.strip() and not second.strip():
        return 1.0
    return CHRF().sentence_score(first, [second]).score / 100
