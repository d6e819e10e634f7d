"""Hallucinated pairs: training pairs with other stems, for tables of few lexemes.

Source and target of an inflection share their stem. A model that has seen few stems memorises them
and fails for others. So each pair is repeated with random letters in place of the stem, the same in
source and target. The model can only copy them:

    begünstigen, V.PTCP;PST    ->  begünstigt
    wofäbkngpen, V.PTCP;PST    ->  wofäbkngpt

This is the data hallucination of Anastasopoulos and Neubig (2019), "Pushing the Limits of
Low-Resource Morphological Inflection". Three or more units in a row that source and target have in
common are taken for the stem, or a part of it. They find these parts by an alignment of characters,
this file by Ratcliff and Obershelp's matching (Python's `difflib`).
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from onmt_entmax.strings.pairs import Pair

SHORTEST = 3
"""Least number of units in a part of source and target that is taken for a part of the stem"""
_FREQUENT = 0.002
"""Least share of a language's pairs that have a letter which is drawn; rarer ones may be foreign"""


class StemPart(NamedTuple):
    """Units in a row that source and target have in common."""

    in_source: int
    """Where they begin in the source."""
    in_target: int
    """Where they begin in the target."""
    size: int


def hallucinated(pairs: Mapping[str, Sequence[Pair]], copies: int, seed: int) -> list[Pair]:
    """Return pairs with random stems in random order, `copies` for each pair that has a stem.

    The letters of a stem are drawn uniformly from those that the language often has in source and
    target, small letters for small ones and capital letters for capital ones. Other units stay,
    such as digits, spaces and combining marks.

    Args:
        pairs: pairs of each language.
        copies: number of copies of each pair.
        seed: seed of the random letters and the order, which depend on nothing else.
    """
    generator = random.Random(f"{seed}/hallucinated")
    hallucinated_pairs: list[Pair] = []
    for language_pairs in pairs.values():
        letters = Letters.of(language_pairs)
        for pair in language_pairs:
            stem = stem_of(pair)
            if stem:
                hallucinated_pairs += [
                    letters.replace(pair, stem, generator) for _ in range(copies)
                ]
    generator.shuffle(hallucinated_pairs)
    return hallucinated_pairs


def stem_of(pair: Pair) -> list[StemPart]:
    """Return the parts of a pair's stem; none if source and target share too little."""
    matcher = SequenceMatcher(None, pair.source, pair.target, autojunk=False)
    blocks = matcher.get_matching_blocks()
    return [StemPart(block.a, block.b, block.size) for block in blocks if block.size >= SHORTEST]


def stem_share(pairs: Sequence[Pair]) -> float:
    """Return the mean share of a source's units that belong to its stem, from 0 to 1.

    If it is near 1, words change at their ends. If it is small, they change inside, and a model
    that is trained on hallucinated stems learns to leave the inside as it is.
    """
    shares = (sum(part.size for part in stem_of(pair)) / len(pair.source) for pair in pairs)
    return sum(shares) / max(len(pairs), 1)


class Letters:
    """The letters of a language from which stems are drawn.

    Args:
        letters: units that are letters.
    """

    def __init__(self, letters: Iterable[str]) -> None:
        self._letters = sorted(letters)
        self._capital = [letter for letter in self._letters if letter.isupper()]
        self._other = [letter for letter in self._letters if not letter.isupper()]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Letters":
        """Return the letters that many pairs of a language have in source and target."""
        counts = Counter(
            unit for pair in pairs for unit in {*pair.source}.intersection(pair.target)
        )
        least = _FREQUENT * len(pairs)
        return cls(unit for unit, count in counts.items() if count >= least and unit.isalpha())

    def replace(self, pair: Pair, stem: Iterable[StemPart], generator: random.Random) -> Pair:
        """Return a pair with other letters in its stem, the same ones in source and target.

        Args:
            pair: pair of the language.
            stem: parts of its stem, as `stem_of` returns them.
            generator: draws the letters.
        """
        source, target = list(pair.source), list(pair.target)
        for part in stem:
            for offset in range(part.size):
                in_source, in_target = part.in_source + offset, part.in_target + offset
                letter = source[in_source]
                choices = self._capital if letter.isupper() else self._other
                if letter.isalpha() and choices:
                    source[in_source] = target[in_target] = generator.choice(choices)
        return Pair(pair.marks, tuple(source), tuple(target))
