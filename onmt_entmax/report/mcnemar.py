"""Compare two predictions of the same words by McNemar's exact test."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onmt_entmax.report.tables import aligned_table

_EXACT = 1000  # words up to which binomials are integers, of at most 300 digits
_NEGLIGIBLE = 1e-17  # share of a sum of floats that does not change it


@dataclass(frozen=True)
class Difference:
    """Words that only one of two sides has right."""

    won: int
    """Only the first side."""
    lost: int
    """Only the second."""
    p: float
    """Of McNemar's test, two-sided."""


def mcnemar(won: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (McNemar 1947).

    Args:
        won: words that only the first system gets right.
        lost: words that only the second does.
    """
    number, fewer = won + lost, min(won, lost)
    # Terms of the binomial tail, C(number, k) / 2^number, from the largest one down.
    term = _binomial(number, fewer)
    tail = 0.0
    for k in range(fewer, -1, -1):
        tail += term
        term = term * k / (number - k + 1)  # C(n, k - 1) = C(n, k) k / (n - k + 1)
        if term < _NEGLIGIBLE * tail:
            break
    return min(1.0, 2 * tail)


def _binomial(number: int, k: int) -> float:
    """Return the probability of k heads in `number` throws of a fair coin."""
    if number <= _EXACT:
        return math.comb(number, k) / 2**number
    # By logarithms: the integers of a large table may have millions of digits.
    logs = math.lgamma(number + 1) - math.lgamma(k + 1) - math.lgamma(number - k + 1)
    return math.exp(logs - number * math.log(2))


def comparison(
    languages: Iterable[str], right: Iterable[bool], other: Iterable[bool]
) -> dict[str, Difference]:
    """Return the words that one side alone has right, and p: by language, and of `all` words.

    A language named all is `all (language)`.

    Args:
        languages: of each word.
        right: whether one side has it right.
        other: whether the other side has.
    """
    won, lost = Counter[str](), Counter[str]()
    names: set[str] = set()
    for language, ours, theirs in zip(languages, right, other, strict=True):
        names.add(language)
        won[language] += ours and not theirs
        lost[language] += theirs and not ours
    rows = {
        "all (language)" if name == "all" else name: (won[name], lost[name])
        for name in sorted(names)
    }
    rows["all"] = won.total(), lost.total()
    return {
        name: Difference(ours, theirs, mcnemar(ours, theirs))
        for name, (ours, theirs) in rows.items()
    }


def comparison_text(compared: Mapping[str, Difference], other: str) -> str:
    """Return a comparison as a table; `other` names the other side."""
    rows = [["language", "only this right", f"only {other}", "p"]]
    for name, row in compared.items():
        rows.append([name, str(row.won), str(row.lost), f"{row.p:.4f}"])
    return aligned_table(rows)
