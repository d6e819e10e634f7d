"""Headings of tables: rows that name the columns, whatever people call these."""

import re
from collections.abc import Sequence

from onmt_entmax.strings.task import LANGUAGE_COLUMN, LEFT_OUT, SOURCE, TAGS, TARGET

# What people call the columns. `word` is the source, or the target of a table with another source.
NAMES = {
    SOURCE: "source, lemma, lexeme, headword, base, base form, citation form, dictionary form, "
    "input, grapheme, graphemes, orthography, spelling, src",
    TARGET: "target, form, inflected, inflected form, inflection, word form, wordform, surface, "
    "surface form, output, phoneme, phonemes, phones, pronunciation, transcription, ipa, tgt",
    TAGS: "tags, tag, features, feature, feats, msd, unimorph, morphology, morphological tags, "
    "morphological features, morphosyntactic description",
    LANGUAGE_COLUMN: "language, lang, iso",
}
_COLUMN_OF = {name: column for column, names in NAMES.items() for name in names.split(", ")}
# Of two columns with such names, the one with one of these.
_SUREST = {SOURCE: ("source", "lemma"), TARGET: ("target", "form"), TAGS: ("tags",)}


def named_columns(first: Sequence[str], below: Sequence[Sequence[str]] = ()) -> tuple[str, ...]:
    """Return the columns that a heading names, or nothing if the first row is a row like others.

    A heading names the source, and the target or the tags. Rows below have neither its words among
    their tags nor, if it names no tags, those of a column that it does not name.

    Args:
        first: columns of the first row.
        below: columns of the others.
    """
    columns = _columns_by_names(first)
    if SOURCE not in columns or not {TARGET, TAGS} & set(columns):
        return ()
    if not below and TAGS not in columns:  # a single pair may be `word` and `form`
        return ()
    unlike = TAGS if TAGS in columns else LEFT_OUT
    for position, column in enumerate(columns):
        if column == unlike:
            words = _words(first[position])
            if any(words & _words(row[position]) for row in below if position < len(row)):
                return ()
    return tuple(columns)


def _columns_by_names(cells: Sequence[str]) -> list[str]:
    """Return the column that each cell names; `-` for cells that name none, or not the only one."""
    names = [re.sub(r"[\s_-]+", " ", cell.strip()).casefold() for cell in cells]
    columns = [LEFT_OUT] * len(names)
    for column in NAMES:
        positions = [n for n, name in enumerate(names) if column_of(name) == column]
        if not positions and column in (SOURCE, TARGET) and names.count("word") == 1:
            position = names.index("word")
            columns[position] = column
            names[position] = ""  # it is one column only
            continue
        if len(positions) > 1:
            positions = [n for n in positions if names[n] in _SUREST.get(column, ())]
        if len(positions) == 1:
            columns[positions[0]] = column
    return columns


def may_be_heading(source: str) -> bool:
    """Tell whether the only text of a row is one that headings have for the source."""
    name = source.strip().lower()
    return name == "word" or column_of(name) == SOURCE


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

    No row below has its word among the tags. Tags are codes, in capitals or divided by `;`, `=` and
    brackets, and a heading has words; or it is in capitals, and sources and targets are not.
    """
    position = columns.index(TAGS)
    tags = first[position].strip()
    others = [row[position].strip() for row in rows]
    if any(_words(tags) & _words(other) for other in others):
        return False
    if column_of(tags.casefold()) == TAGS:
        return True
    if tags.upper() != tags:
        return _are_words(tags) and not any(map(_are_words, others))
    texts = [n for n, column in enumerate(columns) if column in (SOURCE, TARGET)]
    in_capitals = all(
        first[n].isupper() and _are_words(first[n].lower()) for n in (*texts, position)
    )
    return in_capitals and not any(row[n].isupper() for row in rows for n in texts)


def column_of(name: str) -> str | None:
    """Return the column that a name in lower case says, also in the plural; None: it says none."""
    return _COLUMN_OF.get(name) or _COLUMN_OF.get(name.removesuffix("s"))


def _words(cell: str) -> set[str]:
    """Return the words of a cell in lower case; tags are several."""
    return {word.strip() for word in re.split(r"[;,=|]", cell.casefold())} - {""}


def _are_words(text: str) -> bool:
    """Tell whether a text is words, which are not all in capitals."""
    return text.upper() != text and re.fullmatch(r"[^\W\d_]+([\s_-][^\W\d_]+)*", text) is not None
