"""McNemar's exact test: do two systems, which predicted the same words, differ in accuracy?"""

import math

_EXACT = 1000  # words up to which binomials are integers, of at most 300 digits
_NEGLIGIBLE = 1e-17  # share of a sum of floats that does not change it


def mcnemar(won: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (McNemar 1947).

    Args:
        won: words that only the first system gets right.
        lost: words that only the second does.
    """
    n, fewer = won + lost, min(won, lost)
    # Terms of the binomial tail, C(n, k) / 2^n, from the largest one down.
    term = _binomial(n, fewer)
    tail = 0.0
    for k in range(fewer, -1, -1):
        tail += term
        term = term * k / (n - k + 1)  # C(n, k - 1) = C(n, k) k / (n - k + 1)
        if term < _NEGLIGIBLE * tail:
            break
    return min(1.0, 2 * tail)


def _binomial(n: int, k: int) -> float:
    """Return the probability of k heads in n throws of a fair coin."""
    if n <= _EXACT:
        return math.comb(n, k) / 2**n
    # By logarithms: the integers of a large table may have millions of digits.
    logs = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(logs - n * math.log(2))
