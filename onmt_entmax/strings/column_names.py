"""Recognise headings by the names that people give to the columns of a table.

`named_columns` reads the first row of a table:

| first row | columns | |
|---|---|---|
| `Lemma`, `Features`, `Form` | source, tags, target | each names one |
| `lemma`, `forms`, `count` | source, target, - | a plural; `count` names none |
| `word`, `tags`, `form` | source, tags, target | nothing else names the source |
| `lemma`, `word`, `tags` | source, target, tags | nothing else names the target |
| `lemma`, `base`, `form` | source, -, target | of two names of the source, `lemma` is surer |
| `form`, `forms` | (no heading) | nothing names the source |

A row of words may look like a heading: a table of English nouns has `form` and `forms`. So a row is
no heading if its word in the column of tags, or in an unnamed column, also stands in a row below.
"""

import re
from collections.abc import Mapping, Sequence

from onmt_entmax.strings.task import LANGUAGE_COLUMN, LEFT_OUT, SOURCE, TAGS, TARGET

# Names in lower case. `_WORD` may name two columns, and is not among them.
_NAMES = {
    SOURCE: (
        "source", "lemma", "lexeme", "headword", "base", "base form", "citation form",
        "dictionary form", "input", "grapheme", "graphemes", "orthography", "spelling", "src",
    ),
    TARGET: (
        "target", "form", "inflected", "inflected form", "inflection", "word form", "wordform",
        "surface", "surface form", "output", "phoneme", "phonemes", "phones", "pronunciation",
        "transcription", "ipa", "tgt",
    ),
    TAGS: (
        "tags", "tag", "features", "feature", "feats", "msd", "unimorph", "morphology",
        "morphological tags", "morphological features", "morphosyntactic description",
    ),
    LANGUAGE_COLUMN: ("language", "lang", "iso"),
}  # fmt: skip
_COLUMN_OF = {name: column for column, names in _NAMES.items() for name in names}
_WORD = "word"  # names the source; if another name does, it names the target
# If several cells name one column, such as `lemma` and `base`, the one with one of these counts.
_SUREST = {SOURCE: ("source", "lemma"), TARGET: ("target", "form"), TAGS: ("tags",)}
_DIVIDERS_OF_TAGS = re.compile(r"[;,=|]")
_DIVIDERS_OF_WORDS = re.compile(r"[\s_-]+")


def column_of(cell: str) -> str | None:
    """Return the column that a cell of a heading names, also in the plural; None: it names none."""
    name = normalised(cell)
    return _COLUMN_OF.get(name) or _COLUMN_OF.get(name.removesuffix("s"))


def may_name_source(cell: str) -> bool:
    """Return whether a cell may be a heading's name of the source, such as `word` or `lemma`."""
    return normalised(cell) == _WORD or column_of(cell) == SOURCE


def normalised(cell: str) -> str:
    """Return a cell as it would stand in `_NAMES`: in lower case, with spaces between words.

    The sign `#` of a comment may stand before a heading.
    """
    return _DIVIDERS_OF_WORDS.sub(" ", cell.strip().lstrip("#").strip()).casefold()


def singular(cell: str) -> str:
    """Return a cell as headings are compared: `Forms` and `form` are one name."""
    return normalised(cell).removesuffix("s")


def is_same_name(cell: str, other: str) -> bool:
    """Return whether two cells are one name; empty ones are none."""
    return singular(cell) == singular(other) != ""


def named_columns(first: Sequence[str], below: Sequence[Sequence[str]] = ()) -> tuple[str, ...]:
    """Return the columns that a heading names, `-` for unnamed ones; nothing for another row.

    A row is no heading if it is like a row below (`is_like_rows_below`), or if it may be the only
    pair of a table.

    Args:
        first: cells of the first row.
        below: cells of the other rows.
    """
    columns = columns_by_names(first)
    if not below and TAGS not in columns:  # such as `word` and `form`
        return ()
    return () if is_like_rows_below(first, columns, below) else columns


def is_like_rows_below(
    first: Sequence[str], columns: Sequence[str], below: Sequence[Sequence[str]]
) -> bool:
    """Return whether the first row has a word in common with a row below, and so is no heading.

    Only words of the column of tags are compared or, without tags, those of unnamed columns.
    """
    compared = TAGS if TAGS in columns else LEFT_OUT
    return any(
        column == compared and stands_below(first[position], position, below)
        for position, column in enumerate(columns)
    )


def columns_by_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the column that each cell names, `-` if none; each column is named at most once.

    A heading names the source, and the target or the tags; nothing is returned for other cells.
    After the sign `#` of a comment, a heading must name all columns: the rows below tell more.
    """
    columns = with_usual_names([None] * len(cells), cells)
    is_heading = SOURCE in columns and not {TARGET, TAGS}.isdisjoint(columns)
    is_comment = any(cell.lstrip().startswith("#") for cell in cells)
    return columns if is_heading and not (is_comment and LEFT_OUT in columns) else ()


def with_usual_names(known: Sequence[str | None], cells: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a heading, each named at most once; `-` for cells that name none.

    Args:
        known: column of each cell, as far as it is known; None: the cell may have a usual name.
        cells: cells of the heading.
    """
    columns = list(known)
    # Names that have no column yet, by position.
    unused = {n: normalised(cell) for n, cell in enumerate(cells) if known[n] is None}
    for column in _NAMES:
        position = None if column in known else _position_of(column, unused)
        if position is not None:
            columns[position] = column
            del unused[position]
    return tuple(column or LEFT_OUT for column in columns)


def _position_of(column: str, names: Mapping[int, str]) -> int | None:
    """Return the position of a column in a heading; None if no cell names it, or several do.

    Args:
        column: name of a column, such as `source`.
        names: normalised names of the cells, by position.
    """
    positions = [position for position, name in names.items() if column_of(name) == column]
    if not positions and column in (SOURCE, TARGET):
        positions = [position for position, name in names.items() if name == _WORD]
    elif len(positions) > 1:
        surest = _SUREST.get(column, ())
        positions = [position for position in positions if names[position] in surest]
    return positions[0] if len(positions) == 1 else None


def stands_below(cell: str, position: int, below: Sequence[Sequence[str]]) -> bool:
    """Return whether a row below has a word of a cell in the same column."""
    words = _words(cell)
    return any(words & _words(row[position]) for row in below if position < len(row))


def _words(cell: str) -> set[str]:
    """Return the words of a cell in lower case; several tags are several words."""
    return {word.strip() for word in _DIVIDERS_OF_TAGS.split(cell.casefold())} - {""}
