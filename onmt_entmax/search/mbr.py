"""Minimum Bayes risk: choose the output with the highest expected utility.

With the probabilities p of a model (Kumar and Byrne 2004; Eikema and Aziz 2020),

    U(y) = sum over outputs t of p(t) u(y, t),

where the utility u(y, t), from 0 to 1, says how well y does if t is right. A search lists some
outputs; let S(y) be the sum over these, and m the probability of all others. Then

    S(y) <= U(y) <= S(y) + m        for every y.

If everything is listed, m is 0. Otherwise an output that is not listed may be better than the
choice, so that one needs a bound too. A text y whose parts (tokens or n-grams, as the utility
counts them) are those of a listed text has the same U. Any other has u(y, t) <= c(t) < 1 for every
listed t, where c follows from the length of t alone (see `most_utility`), so that

    U(y) <= sum over listed t of p(t) c(t) + m.

With exact match U(y) is p(y), and the bounds of the search hold, which are narrower.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from onmt_entmax.search.expansion import Floats

Utility = Literal["exact_match", "edit_distance", "chrf"]
MbrLevel = Literal["exact", "proven", "found", "none"]

UTILITIES: tuple[Utility, ...] = get_args(Utility)
_ORDER = 6  # longest n-gram of chrF
MOST_TEXTS = 500  # compared with each other; the rest counts as not listed


@dataclass(frozen=True)
class Decision:
    """Texts by expected utility."""

    utility: Utility
    texts: tuple[str, ...]
    """All that were listed, best first; of equally good ones the more probable first. Edit distance
    and chrF compare the 500 most probable ones; the others count as not listed."""
    expected: tuple[float, ...]
    """Lower limits of their expected utilities; exact if `slack` is 0."""
    slack: float
    """How much higher each may be."""
    level: MbrLevel
    """`exact`: everything is known, and no output of the model is better than the first text.
    `proven`: no text is better, though not everything is known. `found`: no listed text is better.
    `none`: a listed text may be better."""


def decide(
    utility: Utility,
    probabilities: Mapping[str, float],
    left: float,
    slack: float,
    bound: float,
) -> Decision:
    """Rank texts by expected utility.

    Args:
        utility: which.
        probabilities: of the listed texts, at least one; lower limits.
        left: the most probability that all else may have; 0 only if everything is known.
        slack: how much more probability a listed text may have.
        bound: the most probability that a text which is not listed may have.
    """
    # Stable sorts: of equal texts the more probable, then the one listed first.
    listed = sorted(probabilities, key=lambda text: -probabilities[text])
    weights = np.array([probabilities[text] for text in listed])
    if utility == "exact_match":
        expected, above, elsewhere = weights, slack, bound
    else:
        left += float(weights[MOST_TEXTS:].sum())
        listed, weights = listed[:MOST_TEXTS], weights[:MOST_TEXTS]
        expected, above = utilities(utility, listed, listed) @ weights, left
        elsewhere = float(weights @ [most_utility(utility, text) for text in listed]) + left
    order = np.argsort(-expected, kind="stable")
    first, second = expected[order[0]], expected[order[1]] if len(order) > 1 else -np.inf
    beats_found = first >= second + above
    level: MbrLevel = "found" if beats_found else "none"
    if left == 0:
        level = "exact"
    elif beats_found and first >= elsewhere:
        level = "proven"
    return Decision(
        utility,
        tuple(listed[index] for index in order.tolist()),
        tuple(expected[order].tolist()),
        above,
        level,
    )


def most_utility(utility: Utility, text: str) -> float:
    """Return the highest utility of a text whose parts are not those of `text`, if `text` is right.

    Edit distance, of n tokens: one that has k <= n tokens differs in one of n at least; one that
    has n + i tokens lacks i of n + i.

    chrF, of n characters: with fewer, recall is at most (n - 1) / n; with more, precision is at
    most n / (n + 1); with n, both lack an n-gram of one order. chrF grows with both.
    """
    if utility == "edit_distance":
        n = len(text.split())
        return n / (n + 1)
    n = len("".join(text.split()))
    if n == 0:
        return 0.0
    shorter, longer = float(_f_score(1.0, 1 - 1 / n)), float(_f_score(n / (n + 1), 1.0))
    return max(shorter, longer, 1 - 1 / (min(n, _ORDER) * n))


def utilities(utility: Utility, candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Return the utility `(candidates, references)` of each candidate if a reference is right.

    Edit distance: 1 - that of tokens / length of the longer text. chrF: sentence chrF as
    sacrebleu's, from 0 to 1 (Popovic 2015); texts without characters agree.
    """
    if utility == "chrf":
        return _chrf(candidates, references)
    tokens = [[text.split() for text in texts] for texts in (candidates, references)]
    return cdist(*tokens, scorer=Levenshtein.normalized_similarity, dtype=np.float64)


def _chrf(candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Return sentence chrF `(candidates, references)`; see :func:`utilities`.

    The k-th occurrence of an n-gram in a text is a column, so that matches are a product.
    """
    texts = ["".join(text.split()) for text in (*candidates, *references)]
    lengths = np.array([len(text) for text in texts])
    count = len(candidates)
    precision, recall, orders = np.zeros((3, count, len(references)))
    for n in range(1, _ORDER + 1):
        columns: dict[tuple[str, int], int] = {}  # of n-grams with the number of earlier ones
        entries = []
        for row, text in enumerate(texts):
            seen = Counter[str]()
            for begin in range(len(text) - n + 1):
                ngram = text[begin : begin + n]
                entries.append((row, columns.setdefault((ngram, seen[ngram]), len(columns))))
                seen[ngram] += 1
        has = np.zeros((len(texts), len(columns)), dtype=np.float32)
        has[tuple(np.array(entries, dtype=np.int64).reshape(-1, 2).T)] = 1
        matches = np.asarray(has[:count] @ has[count:].T, dtype=np.float64)
        of_candidate, of_reference = np.split(np.maximum(lengths - n + 1, 0), [count])
        precision += matches / np.maximum(of_candidate, 1)[:, None]
        recall += matches / np.maximum(of_reference, 1)
        orders += np.minimum(of_candidate[:, None], of_reference) > 0
    mean = np.maximum(orders, 1)
    table = _f_score(precision / mean, recall / mean)
    empty = lengths == 0
    return np.where(empty[:count, None] & empty[count:], 1.0, table)


def _f_score(precision: Floats | float, recall: Floats | float) -> Floats:
    """Return the harmonic mean in which recall weighs four times as much; 0 where both are 0."""
    weighted = np.maximum(4 * np.asarray(precision) + recall, 1e-300)
    return np.asarray(5 * np.asarray(precision) * recall / weighted)
