"""More training pairs out of few: hallucinated words, and lemmas that are copied.

Hallucination (Anastasopoulos and Neubig 2019, "Pushing the Limits of Low-Resource Morphological
Inflection", section 3): where three or more characters in a row are the same in lemma and form,
that is taken for the stem; what is inside it is replaced by random characters of the language,
the same ones on both sides. The pair has a stem that no word has, and the inflection of a real
one:

    w[al]k  w[al]ked  V;PST    ->    wüok  wüoked  V;PST

It teaches to copy stems, and that what is around them is the inflection.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from words.rows import Row

STEM = 3  # characters in a row that must be the same
COPY_TAG = "COPY"  # in the place of a word's tags: the form is the lemma
_TRIES = 20  # draws for one new pair, before there are taken to be no more


class Stem(NamedTuple):
    """A region that lemma and form share."""

    lemma: int
    """where it begins in the lemma"""
    form: int
    """where it begins in the form"""
    length: int

    def inside(self) -> range:
        """Places in the region that are replaced: all but the first and the last, which the
        inflection may depend on."""
        return range(1, self.length - 1)


def align(lemma: str, form: str) -> list[tuple[int, int]]:
    """Pairs of places of equal characters in an alignment of fewest edits, ascending.

    Insertions, deletions and substitutions cost 1 each (Wagner and Fischer 1974). Of alignments
    that cost the same, it is the one that keeps most characters, and these as early as it can.
    """
    width = len(form)
    # For each pair of rests: the fewest edits, and of those the most characters kept, negated.
    costs = [[(0, 0)] * (width + 1) for _ in range(len(lemma) + 1)]
    for i in range(len(lemma), -1, -1):
        for j in range(width, -1, -1):
            ways = []
            if i < len(lemma):
                ways.append((costs[i + 1][j][0] + 1, costs[i + 1][j][1]))
            if j < width:
                ways.append((costs[i][j + 1][0] + 1, costs[i][j + 1][1]))
            if i < len(lemma) and j < width:
                edits, kept = costs[i + 1][j + 1]
                same = lemma[i] == form[j]
                ways.append((edits + (not same), kept - same))
            if ways:
                costs[i][j] = min(ways)
    kept_pairs = []
    i = j = 0
    while i < len(lemma) and j < width:
        edits, kept = costs[i + 1][j + 1]
        same = lemma[i] == form[j]
        if costs[i][j] == (edits + (not same), kept - same):
            if same:
                kept_pairs.append((i, j))
            i, j = i + 1, j + 1
        elif costs[i][j] == (costs[i + 1][j][0] + 1, costs[i + 1][j][1]):
            i += 1
        else:
            j += 1
    return kept_pairs


def stems(lemma: str, form: str) -> list[Stem]:
    """Regions of at least `STEM` characters in a row that are aligned and the same."""
    found: list[Stem] = []
    for i, j in align(lemma, form):
        last = found[-1] if found else None
        if last is not None and (i, j) == (last.lemma + last.length, last.form + last.length):
            found[-1] = last._replace(length=last.length + 1)
        else:
            found.append(Stem(i, j, 1))
    return [stem for stem in found if stem.length >= STEM]


def alphabet(rows: Iterable[Row]) -> list[str]:
    """The characters inside the stems of a language, sorted, without white space."""
    return sorted(
        {
            row.lemma[stem.lemma + i]
            for row in rows
            for stem in stems(row.lemma, row.form)
            for i in stem.inside()
            if not row.lemma[stem.lemma + i].isspace()
        }
    )


def replace_stems(row: Row, characters: Sequence[str], generator: random.Random) -> Row:
    """The row with random characters inside its stems; white space stays."""
    lemma, form = list(row.lemma), list(row.form)
    for stem in stems(row.lemma, row.form):
        for i in stem.inside():
            if not lemma[stem.lemma + i].isspace():
                lemma[stem.lemma + i] = form[stem.form + i] = generator.choice(characters)
    return Row("".join(lemma), "".join(form), row.tags)


def hallucinate(rows: Sequence[Row], count: int, generator: random.Random) -> list[Row]:
    """New pairs of a language: distinct, and none with the lemma and tags of a training pair.

    Rows are drawn with replacement, evenly.

    Args:
        rows: the training pairs of the language.
        count: how many pairs are wanted; fewer where the language does not give so many.
        generator: what is random comes from it alone.
    """
    fruitful = [row for row in rows if stems(row.lemma, row.form)]
    characters = alphabet(fruitful)
    made: dict[tuple[str, tuple[str, ...]], Row] = {}
    taken = {(row.lemma, row.tags) for row in rows}
    tries = count * _TRIES if characters else 0
    while len(made) < count and tries:
        tries -= 1
        row = replace_stems(generator.choice(fruitful), characters, generator)
        key = (row.lemma, row.tags)
        if key not in taken:
            made.setdefault(key, row)
    return list(made.values())


def copies(rows: Iterable[Row]) -> list[Row]:
    """A pair for each lemma whose form is the lemma itself, in the order they come."""
    return [Row(lemma, lemma, (COPY_TAG,)) for lemma in dict.fromkeys(row.lemma for row in rows)]
