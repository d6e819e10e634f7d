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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from onmt_entmax.search.arrays import Floats
from onmt_entmax.search.utilities import Similarity, Utility, most_utility, utilities

MbrLevel = Literal["exact", "proven", "found", "none"]

MOST_TEXTS = 500  # compared with each other; the rest counts as not listed


@dataclass(frozen=True)
class Decision:
    """Texts by expected utility."""

    utility: Utility
    texts: tuple[str, ...]
    """All that were listed, best first; of equally good ones the more probable first. Edit distance
    and chrF compare the `MOST_TEXTS` most probable ones; the others count as not listed."""
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
        utility: the utility whose expectation ranks them.
        probabilities: lower limits of the probabilities of the listed texts, at least one.
        left: m at the top of this file, the most probability that all other outputs may have
            together; 0 only if everything is known.
        slack: how much more probability each listed text may have. Only read for exact match.
        bound: the most probability of any text that is not listed. Only read for exact match.
    """
    # Stable sorts: of equal texts the more probable, then the one listed first.
    texts = sorted(probabilities, key=lambda text: -probabilities[text])
    weights = np.array([probabilities[text] for text in texts])
    if utility == "exact_match":
        limits = _Limits(texts, expected=weights, slack=slack, elsewhere=bound, is_exact=left == 0)
    else:
        limits = _limits(utility, texts, weights, left)
    order = np.argsort(-limits.expected, kind="stable")
    expected = limits.expected[order]
    return Decision(
        utility,
        texts=tuple(limits.texts[index] for index in order.tolist()),
        expected=tuple(expected.tolist()),
        slack=limits.slack,
        level=_level(expected, limits),
    )


class _Limits(NamedTuple):
    """Limits of the expected utilities U(y)."""

    texts: Sequence[str]
    """The listed texts that are compared, the most probable first."""
    expected: Floats
    """`(texts,)` S(y), the lower limit of each text's U(y)."""
    slack: float
    """U(y) of these texts is at most S(y) + slack."""
    elsewhere: float
    """U(y) of a text whose parts are those of no listed text is at most this."""
    is_exact: bool
    """Whether every output of the model is among the texts, so that S is U."""


def _limits(utility: Similarity, texts: Sequence[str], weights: Floats, left: float) -> _Limits:
    """Return the limits of edit distance or chrF, by the inequalities at the top of this file.

    Args:
        utility: edit distance or chrF.
        texts: the listed texts, the most probable first.
        weights: `(texts,)` their probabilities.
        left: the most probability that all other outputs may have together.
    """
    unlisted = left + float(weights[MOST_TEXTS:].sum())  # m, with the texts that are not compared
    compared, probabilities = texts[:MOST_TEXTS], weights[:MOST_TEXTS]
    most = [most_utility(utility, text) for text in compared]
    return _Limits(
        compared,
        expected=utilities(utility, compared, compared) @ probabilities,
        slack=unlisted,
        elsewhere=float(probabilities @ most) + unlisted,
        is_exact=unlisted == 0,
    )


def _level(expected: Floats, limits: _Limits) -> MbrLevel:
    """Return what is proven of the first text y.

    U(y) is at least S(y). So no listed text z is better if S(y) >= S(z) + slack, and no other text
    if S(y) >= elsewhere.

    Args:
        expected: `(texts,)` S(y), best first.
        limits: the limits of U.
    """
    if limits.is_exact:
        return "exact"
    first = expected[0]
    if len(expected) > 1 and first < expected[1] + limits.slack:
        return "none"
    return "proven" if first >= limits.elsewhere else "found"
