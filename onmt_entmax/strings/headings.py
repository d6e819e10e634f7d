"""Headings of tables: rows that name the columns, whatever people call these.

A heading is recognised in one of two ways:

- `named_columns`: its cells are names of columns, such as `lemma`, `form` and `features`. It then
  says what the columns are.
- `is_heading`: the columns are known, and the first row does not look like one of the rows below,
  such as `Wort`, `Form` and `Merkmale` above tags such as `N;PL`. It is then left out.

Words of a language may be names of columns, too: a table of English has `form` and `forms`. So
where there are tags or unnamed columns, no row below may have the heading's words in these.
"""

import re
from collections.abc import Sequence

from onmt_entmax.strings.task import LANGUAGE_COLUMN, LEFT_OUT, SOURCE, TAGS, TARGET

# What people call the columns. `word` is the source, or the target of a table with another source.
NAMES = {
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
_COLUMN_OF = {name: column for column, names in NAMES.items() for name in names}
# Of two cells that name one column, such as `lemma` and `base`, the one with one of these counts.
_SUREST = {SOURCE: ("source", "lemma"), TARGET: ("target", "form"), TAGS: ("tags",)}
_WORD = "word"
_DIVIDERS_OF_TAGS = re.compile(r"[;,=|]")
_DIVIDERS_OF_WORDS = re.compile(r"[\s_-]+")
_LETTERS_ALONE = re.compile(r"[^\W\d_]+([\s_-][^\W\d_]+)*")  # words: no digits, dots or brackets


def column_of(cell: str) -> str | None:
    """Return the column that a cell of a heading names, also in the plural; None: it names none."""
    name = _name_in(cell)
    return _COLUMN_OF.get(name) or _COLUMN_OF.get(name.removesuffix("s"))


def _name_in(cell: str) -> str:
    """Return a cell as `NAMES` has names: in lower case, with spaces between words."""
    return _DIVIDERS_OF_WORDS.sub(" ", cell.strip()).casefold()


def may_be_heading(source: str) -> bool:
    """Tell whether the only text of a row is one that headings have for the source."""
    return _name_in(source) == _WORD or column_of(source) == SOURCE


# --- headings by their names -----------------------------------------------------------------


def named_columns(first: Sequence[str], below: Sequence[Sequence[str]] = ()) -> tuple[str, ...]:
    """Return the columns that a heading names, or nothing if the first row is a row like others.

    A heading names the source, and the target or the tags. Where it names tags, no row below has
    its word among the tags. Where it does not, some of its columns may be unnamed, and no row below
    has the heading's words there.

    Args:
        first: cells of the first row.
        below: cells of the others.
    """
    columns = _columns_by_names(first)
    if SOURCE not in columns or not {TARGET, TAGS} & set(columns):
        return ()
    if not below and TAGS not in columns:  # a single pair may be `word` and `form`
        return ()
    telling = TAGS if TAGS in columns else LEFT_OUT
    positions = [position for position, column in enumerate(columns) if column == telling]
    if any(_stands_below(first[position], position, below) for position in positions):
        return ()
    return tuple(columns)


def _columns_by_names(cells: Sequence[str]) -> list[str]:
    """Return the column that each cell names, `-` if none.

    Each column is named at most once. Several cells that name it, none of them or two of them by a
    surest name, are `-`. The cell `word` is the source if no other cell is, else the target if no
    other cell is.
    """
    names = list(map(_name_in, cells))
    columns = [LEFT_OUT] * len(names)
    for column in NAMES:
        position = _position_of(column, names)
        if position is not None:
            columns[position] = column
            names[position] = ""  # it names no further column
    return columns


def _position_of(column: str, names: Sequence[str]) -> int | None:
    """Return which of the names in a heading is that of a column; None: none, or no single one."""
    positions = [position for position, name in enumerate(names) if column_of(name) == column]
    if not positions and column in (SOURCE, TARGET):
        positions = [position for position, name in enumerate(names) if name == _WORD]
    elif len(positions) > 1:
        surest = _SUREST.get(column, ())
        positions = [position for position in positions if names[position] in surest]
    return positions[0] if len(positions) == 1 else None


# --- headings by the rows below --------------------------------------------------------------


def is_heading(
    first: Sequence[str], below: Sequence[Sequence[str]], columns: Sequence[str]
) -> bool:
    """Tell whether the first row is a heading: of sources alone by its name, else by its tags.

    Args:
        first: cells of the first row.
        below: cells of the others.
        columns: of the table.
    """
    rows = [row for row in below if len(row) == len(columns)]
    if len(first) != len(columns) or not rows:
        return False
    if not {TARGET, TAGS} & set(columns):
        position = columns.index(SOURCE)
        is_new = all(row[position] != first[position] for row in rows)
        return may_be_heading(first[position]) and is_new
    return TAGS in columns and _is_heading_by_tags(first, rows, columns)


def _is_heading_by_tags(
    first: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[str]
) -> bool:
    """Tell whether the first row is a heading of a table with tags, in whatever language.

    Its cell of tags must not be among the tags below, and must either

    - be a name of the column, such as `tags`;
    - be words, such as `Merkmale`, above tags that are codes in capitals or between `;`, `=` and
      brackets; or
    - be in capitals, as `MERKMALE`, in a row in capitals above sources and targets that are not.
    """
    position = columns.index(TAGS)
    tags = first[position]
    if _stands_below(tags, position, rows):
        return False
    return (
        column_of(tags) == TAGS
        or _are_words_above_codes(tags, [row[position] for row in rows])
        or _is_only_row_in_capitals(first, rows, columns)
    )


def _are_words_above_codes(first: str, below: Sequence[str]) -> bool:
    """Tell whether the first cell of a column is words and no other is."""
    return _are_words(first.strip()) and not any(_are_words(cell.strip()) for cell in below)


def _is_only_row_in_capitals(
    first: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[str]
) -> bool:
    """Tell whether words in capitals stand above sources and targets that are not in capitals."""
    texts = [position for position, column in enumerate(columns) if column in (SOURCE, TARGET)]
    cells = [first[position] for position in (*texts, columns.index(TAGS))]
    in_capitals = all(cell.isupper() and _are_words(cell.lower()) for cell in cells)
    return in_capitals and not any(row[position].isupper() for row in rows for position in texts)


def _stands_below(cell: str, position: int, below: Sequence[Sequence[str]]) -> bool:
    """Tell whether a row has a word of a heading's cell in the same column."""
    words = _words(cell)
    return any(words & _words(row[position]) for row in below if position < len(row))


def _words(cell: str) -> set[str]:
    """Return the words of a cell in lower case; several tags are several words."""
    return {word.strip() for word in _DIVIDERS_OF_TAGS.split(cell.casefold())} - {""}


def _are_words(text: str) -> bool:
    """Tell whether a text is words, which are not all in capitals."""
    return text.upper() != text and _LETTERS_ALONE.fullmatch(text) is not None
