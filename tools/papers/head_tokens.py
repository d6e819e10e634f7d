"""Tokens of a sentence, for measures of attention heads: clusters of subwords, and questions.

`head_tables.py` defines both in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tools.papers.pictures import JOINER

SPACER, CONTINUED = "▁", "@@"  # subword marks of SentencePiece and subword-nmt
HYPHENS = ("-", "‐", "‑", "@-@")


def clusters(tokens: Sequence[str]) -> list[int]:
    """Return for each token the number of its subword cluster.

    A cluster is a word of several subwords, with its hyphens; any other token is its own cluster.
    Punctuation that a tokeniser split off is not part of the word beside which it stood.
    """
    spaced = any(token.startswith(SPACER) for token in tokens)
    numbers = list(range(len(tokens)))
    for position in range(1, len(tokens)):
        before = tokens[position - 1]
        token = tokens[position]
        joined = (
            before.endswith((JOINER, CONTINUED))
            or token.startswith(JOINER)
            or (spaced and not token.startswith(SPACER))
            or "@-@" in (before, token)
        )
        if joined and _is_part_of_word(before) and _is_part_of_word(token):
            numbers[position] = numbers[position - 1]
    return numbers


def _is_part_of_word(token: str) -> bool:
    """Return whether a token is part of a word or a hyphen, not punctuation."""
    bare = token.strip(JOINER + SPACER).removesuffix(CONTINUED)
    return bare in HYPHENS or any(character.isalnum() for character in bare)


def divided_positions(numbers: Sequence[int]) -> list[int]:
    """Return the positions of tokens in clusters of several tokens.

    Args:
        numbers: number of each token's cluster; see `clusters`.
    """
    sizes = Counter(numbers)
    return [position for position, number in enumerate(numbers) if sizes[number] > 1]


class Interrogation(NamedTuple):
    """What makes a sentence a question.

    Attributes:
        positions: positions of interrogative words.
        ends_with_mark: whether the last token is a question mark.
    """

    positions: list[int]
    ends_with_mark: bool


def interrogation(tokens: Sequence[str], words: Iterable[str]) -> Interrogation:
    """Return the interrogative words of a sentence, and whether a question mark ends it.

    Args:
        tokens: tokens of a sentence.
        words: interrogative ones, in lower case.
    """
    bare = [token.strip(JOINER + SPACER).lower() for token in tokens]
    positions = [position for position, token in enumerate(bare[:-1]) if token in words]
    return Interrogation(positions, ends_with_mark=bare[-1] == "?")
