"""Utilities for minimum Bayes risk: how well a text does if another one, the reference, is right.

A utility u(y, t) is from 0 to 1. It compares certain parts of the texts, such as n-grams: it is 1
if y and t have the same parts, and less otherwise.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from onmt_entmax.search.arrays import Floats

Similarity = Literal["edit_distance", "chrf"]
Utility = Literal["exact_match", Similarity]  # an exact match needs no comparison: see mbr.py

UTILITIES: tuple[Utility, ...] = get_args(Utility)
_ORDERS = range(1, 7)  # lengths of chrF's n-grams, in characters


def utilities(utility: Similarity, candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Return the utility `(candidates, references)` of each candidate for each reference.

    For `edit_distance` it is 1 minus the edit distance in tokens, divided by the length of the
    longer text. For `chrf` it is sacrebleu's sentence chrF (Popovic 2015), but from 0 to 1, and 1
    for two texts without characters.
    """
    if utility == "chrf":
        return _chrf(candidates, references)
    tokens = [[text.split() for text in texts] for texts in (candidates, references)]
    return cdist(*tokens, scorer=Levenshtein.normalized_similarity, dtype=np.float64)


def most_utility(utility: Similarity, reference: str) -> float:
    """Return the highest utility of any text whose parts differ from those of the reference."""
    if utility == "chrf":
        return _most_chrf(len(_letters(reference)))
    return _most_edit_similarity(len(reference.split()))


def _most_edit_similarity(n: int) -> float:
    """Return the highest similarity of a text to another one of n tokens.

    A text of at most n tokens differs in at least one of n, so its similarity is at most 1 - 1 / n.
    A text of n + i tokens differs in at least i of n + i, so it is at most n / (n + i).
    """
    return n / (n + 1)


def _most_chrf(n: int) -> float:
    """Return the highest chrF of a text with other n-grams than a reference of n characters.

    If the text has fewer characters, recall is at most (n - 1) / n. If it has more, precision is at
    most n / (n + 1). If it has n, both lack at least one of the at most n n-grams of some order.
    chrF grows with precision and recall.
    """
    if n == 0:
        return 0.0
    shorter = float(_f_score(precision=1.0, recall=1 - 1 / n))
    longer = float(_f_score(precision=n / (n + 1), recall=1.0))
    orders = min(n, len(_ORDERS))  # a short text has no long n-grams
    of_equal_length = 1 - 1 / (orders * n)
    return max(shorter, longer, of_equal_length)


def _letters(text: str) -> str:
    """Return what chrF compares: the characters without spaces."""
    return "".join(text.split())


def _chrf(candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Return sentence chrF `(candidates, references)`; see `utilities`.

    Precision and recall are means over those orders of which both texts have n-grams.
    """
    count = len(candidates)
    texts = [_letters(text) for text in (*candidates, *references)]
    lengths = np.array([len(text) for text in texts])
    precision, recall, orders = np.zeros((3, count, len(references)))
    for n in _ORDERS:
        occurrences = _occurrences(texts, n)
        matches = np.asarray(occurrences[:count] @ occurrences[count:].T, dtype=np.float64)
        of_candidate, of_reference = np.split(np.maximum(lengths - n + 1, 0), [count])
        # A text without n-grams has no match; the divisor 1 only avoids 0 / 0.
        precision += matches / np.maximum(of_candidate, 1)[:, None]
        recall += matches / np.maximum(of_reference, 1)
        orders += np.minimum(of_candidate[:, None], of_reference) > 0
    mean = np.maximum(orders, 1)
    table = _f_score(precision / mean, recall / mean)
    empty = lengths == 0
    return np.where(empty[:count, None] & empty[count:], 1.0, table)


def _occurrences(texts: Sequence[str], n: int) -> NDArray[np.float32]:
    """Return `(texts, columns)` of 0 and 1: the first, second, ... occurrences of all n-grams.

    The k-th occurrence of an n-gram in a text is a column. So the product of two rows counts the
    n-grams that two texts share, each as often as in the text that has it less often.
    """
    columns: dict[tuple[str, int], int] = {}  # of n-grams with the number of earlier ones
    entries: list[tuple[int, int]] = []  # row and column of each 1
    for row, text in enumerate(texts):
        seen = Counter[str]()
        for begin in range(len(text) - n + 1):
            ngram = text[begin : begin + n]
            entries.append((row, columns.setdefault((ngram, seen[ngram]), len(columns))))
            seen[ngram] += 1
    occurrences = np.zeros((len(texts), len(columns)), dtype=np.float32)
    occurrences[tuple(np.array(entries, dtype=np.int64).reshape(-1, 2).T)] = 1
    return occurrences


def _f_score(precision: Floats | float, recall: Floats | float) -> Floats:
    """Return F with beta 2, in which recall weighs beta squared as much; 0 where both are 0.

    It is (1 + 4) P R / (4 P + R).
    """
    weighted = np.maximum(4 * np.asarray(precision) + recall, 1e-300)  # 0 / 0 becomes 0
    return np.asarray(5 * np.asarray(precision) * recall / weighted)
