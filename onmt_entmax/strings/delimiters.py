"""Guess what divides the columns, the symbols and the tags of a table."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from onmt_entmax.strings.column_names import named_columns
from onmt_entmax.strings.guessed_columns import is_code
from onmt_entmax.strings.tables import Layout, readable_cells

# Mean length of symbols between spaces, such as phones, at most; words are longer.
_LONGEST_SYMBOL = 3
_SHARE_DIVIDED = 0.9  # least share of texts with several symbols; some words have a single phone
_SHARE_OF_WIDTH = 0.9  # least share of rows with equally many columns; some rows may be bad


def guess_delimiter(lines: Sequence[str], *, tags_first: bool = False) -> str:
    """Return what stands between the columns: a tab, a comma or a semicolon.

    If half of the lines have a tab, it is the tab; otherwise the sign between the names of a
    heading, or else a sign that every line has; else the tab. Spreadsheets write semicolons in
    countries with a decimal comma.

    Args:
        lines: lines of the table that are not blank.
        tags_first: whether the tags are known to stand before the source.
    """
    with_tab = sum("\t" in line for line in lines)
    if not lines or 2 * with_tab >= len(lines):
        return "\t"
    tables = {sign: readable_cells(Layout((), sign), lines) for sign in ",;"}
    for sign, table in tables.items():
        if table and named_columns(table[0], table[1:]):
            return sign
    candidates = [sign for sign in tables if all(sign in line for line in lines)]
    if ";" in candidates and not _semicolons_divide_columns(tables[";"]):
        candidates.remove(";")
    if len(candidates) < 2:
        return candidates[0] if candidates else "\t"
    # Lines have both, as in `draw;drew;pos=V,tense=PST`. The sign that divides more rows into
    # equally many columns wins. If both divide as many, the sign farthest from the tags wins.
    farthest = _signs_farthest_from_tags(lines, tables, tags_first=tags_first)
    return max(candidates, key=lambda sign: (_share_of_width(tables[sign]), farthest[sign]))


def _signs_farthest_from_tags(
    lines: Sequence[str], tables: Mapping[str, Sequence[Sequence[str]]], *, tags_first: bool
) -> Mapping[str, int]:
    """Return for a comma and a semicolon how many lines have it at the end without the tags.

    Tags are at one end of the lines, and columns are divided by the sign at the other end, as in
    `draw,drew,V;PST`, `draw;drew;V,PST` and, with the tags first, `V;PST,draw,drew`.

    Args:
        lines: lines that have both signs.
        tables: the cells of the lines by the sign that divides them.
        tags_first: whether the tags are known to stand before the source.
    """
    if not tags_first:
        tags_first = any(_begins_with_tags(tables[sign], other) for sign, other in (",;", ";,"))
    end = -1 if tags_first else 0
    return Counter(re.sub("[^,;]", "", line)[end] for line in lines)


def _begins_with_tags(table: Sequence[Sequence[str]], divider: str) -> bool:
    """Return whether most rows begin with several codes, such as `V;PST`, before a word.

    Args:
        table: cells of the rows.
        divider: what stands between the codes.
    """
    rows = [cells for cells in table if len(cells) > 1]
    begins = sum(
        divider in first and is_code(first) and not is_code(second) for first, second, *_ in rows
    )
    return 2 * begins > len(table)


def _semicolons_divide_columns(table: Sequence[Sequence[str]]) -> bool:
    """Return whether semicolons divide columns, and not only tags.

    If they divide tags, rows have different numbers of cells, or the first cell is several words,
    as in `draw drew V;PST`, where the tabs between the columns were lost.
    """
    single_words = sum(" " not in cells[0].strip() for cells in table)
    return 2 * single_words > len(table) and _share_of_width(table) > _SHARE_OF_WIDTH


def _share_of_width(table: Sequence[Sequence[str]]) -> float:
    """Return the share of the rows that have as many cells as most have; 0 without rows."""
    widths = Counter(map(len, table))
    return max(widths.values()) / len(table) if table else 0.0


def guess_separator(texts: Sequence[str]) -> str:
    """Return a space if the texts are symbols with spaces between them, such as phones; else "".

    Most texts must have at least two symbols, and symbols must be short on average. Spaces around a
    text divide nothing: a table with commas may have one behind each comma.
    """
    divided = [text.strip(" ").split(" ") for text in texts if text]
    symbols = list(chain.from_iterable(divided))
    if not symbols:
        return ""
    several = sum(len(symbols_of_text) > 1 for symbols_of_text in divided)
    are_short = sum(map(len, symbols)) <= _LONGEST_SYMBOL * len(symbols)
    return " " if are_short and several >= _SHARE_DIVIDED * len(divided) else ""


def guess_tag_separator(texts: Sequence[str]) -> str:
    """Return what stands between tags: the first of these that fits the texts, or else `;`.

    - `;` as in `V;PST`
    - `|` as in `Case=Nom|Number=Sing` of Universal Dependencies
    - `,` as in `pos=V,tense=PST` of SIGMORPHON 2016, if a text has `=`
    """
    if any(";" in text for text in texts):
        return ";"
    if any("|" in text for text in texts):
        return "|"
    return "," if any("=" in text for text in texts) else ";"
