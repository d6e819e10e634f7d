"""Compare the accuracy of two predictions of the same words, by language and over all words."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onmt_entmax.report.mcnemar import mcnemar
from onmt_entmax.report.tables import aligned_table

_ALL = "all"
_LANGUAGE_ALL = "all (language)"  # row of a language that has the name of the row of all words


@dataclass(frozen=True)
class Difference:
    """Numbers of words that only one of two sides has right.

    Attributes:
        won: words that only the first side has right.
        lost: words that only the second side has right.
        p: two-sided p-value of McNemar's test.
    """

    won: int
    lost: int
    p: float


def compare_accuracy(
    languages: Iterable[str], right: Iterable[bool], other: Iterable[bool]
) -> dict[str, Difference]:
    """Return the difference of two sides in each language, in order of name, and in `all` words.

    Args:
        languages: language of each word.
        right: whether the first side has each word right.
        other: whether the second side has.
    """
    won, lost = Counter[str](), Counter[str]()
    for language, first, second in zip(languages, right, other, strict=True):
        won[language] += first and not second
        lost[language] += second and not first
    differences = {
        _LANGUAGE_ALL if language == _ALL else language: _difference(won[language], lost[language])
        for language in sorted(won)
    }
    differences[_ALL] = _difference(won.total(), lost.total())
    return differences


def _difference(won: int, lost: int) -> Difference:
    """Return these counts with their p-value."""
    return Difference(won, lost, mcnemar(won, lost))


def comparison_text(compared: Mapping[str, Difference], other: str) -> str:
    """Return a comparison as a table; `other` names the other side."""
    rows = [["language", "only this right", f"only {other}", "p"]]
    for name, row in compared.items():
        rows.append([name, str(row.won), str(row.lost), f"{row.p:.4f}"])
    return aligned_table(rows)
