"""Recognise headings in any language by the rows below them.

`column_names` recognises usual names, such as `lemma`, `form` and `features`, which say what the
columns are. Here the columns are known, and the first row does not look like the others: it is
`Wort`, `Form` and `Merkmale`, and below stand tags such as `N;PL`.
"""

import re
from collections.abc import Sequence

from onmt_entmax.strings.column_names import (
    column_of,
    is_same_name,
    may_name_source,
    stands_below,
)
from onmt_entmax.strings.task import SOURCE, TAGS, TARGET

# Words without digits, dots or brackets.
_LETTERS_ALONE = re.compile(r"[^\W\d_]+([\s_-][^\W\d_]+)*")


def is_heading(
    first: Sequence[str],
    below: Sequence[Sequence[str]],
    columns: Sequence[str],
    *,
    source_name: str = "",
) -> bool:
    """Return whether the first row of a table is a heading.

    In a table of sources alone, the name of its column tells; in others, the tags do.

    Args:
        first: cells of the first row.
        below: cells of the other rows.
        columns: columns of the table.
        source_name: what stands above sources besides usual names; empty: nothing is known.
    """
    rows = [row for row in below if len(row) == len(columns)]
    if len(first) != len(columns) or not rows:
        return False
    if not {TARGET, TAGS} & set(columns):
        position = columns.index(SOURCE)
        is_new = all(row[position] != first[position] for row in rows)
        is_name = may_name_source(first[position]) or is_same_name(first[position], source_name)
        return is_name and is_new
    return TAGS in columns and _is_heading_by_tags(first, rows, columns)


def _is_heading_by_tags(
    first: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[str]
) -> bool:
    """Return whether the first row is a heading of a table with tags, in whatever language.

    Its cell of tags must not be among the tags below, and must either

    - be a name of the column, such as `tags`;
    - be words, such as `Merkmale`, above tags that are codes in capitals or between `;`, `=` and
      brackets; or
    - be in capitals, as `MERKMALE`, in a row in capitals above sources and targets that are not.
    """
    position = columns.index(TAGS)
    tags = first[position]
    if stands_below(tags, position, rows):
        return False
    return (
        column_of(tags) == TAGS
        or _are_words_above_codes(tags, [row[position] for row in rows])
        or _is_only_row_in_capitals(first, rows, columns)
    )


def _are_words_above_codes(first: str, below: Sequence[str]) -> bool:
    """Return whether the first cell of a column is words and no other is."""
    return _are_words(first.strip()) and not any(_are_words(cell.strip()) for cell in below)


def _is_only_row_in_capitals(
    first: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[str]
) -> bool:
    """Return whether words in capitals stand above sources and targets that are not in capitals."""
    texts = [position for position, column in enumerate(columns) if column in (SOURCE, TARGET)]
    cells = [first[position] for position in (*texts, columns.index(TAGS))]
    in_capitals = all(cell.isupper() and _are_words(cell.lower()) for cell in cells)
    return in_capitals and not any(row[position].isupper() for row in rows for position in texts)


def _are_words(text: str) -> bool:
    """Return whether a text consists of words that are not all in capitals."""
    return text.upper() != text and _LETTERS_ALONE.fullmatch(text) is not None
