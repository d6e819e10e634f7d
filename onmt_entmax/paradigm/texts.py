"""A paradigm as tables of text, for a terminal."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.counts import left_out_of
from onmt_entmax.paradigm.sections import Section, sections

_GAP = 2  # spaces between columns, and before the first
_HALF_PERCENT = 0.005
_Pieces = list[str]
"""The text of a place in a table; a line may end between two pieces"""


def cell_text(cell: Inflection) -> str:
    """Return a cell as text: its only form, or all forms with their probabilities.

    `...` means that there are more, or may be, and `?` a warning.
    """
    return " ".join(_pieces(cell))


def _pieces(cell: Inflection) -> list[str]:
    """Return the pieces of a cell's text, one for each form; a line may end after each.

    All but the last one end with ` /`; the last one has the marks `...` and `?`.
    """
    mark = " ?" if cell.warnings else ""
    more = "" if cell.complete else " ..."
    if not cell.forms:
        return ["(none)" + (more if cell.left_out else "") + mark]
    if cell.level == "only":
        return [cell.forms[0].text + mark]
    *others, last = [f"{form.text} {percent(form.prob)}" for form in cell.forms]
    return [*(f"{form} /" for form in others), last + more + mark]


def percent(prob: float) -> str:
    """Return the probability of one form among several, never rounded to 0 or 100 %."""
    if prob <= _HALF_PERCENT:
        return "<1%"
    if prob >= 1 - _HALF_PERCENT:
        return ">99%"
    return f"{100 * prob:.0f}%"


def as_text(cells: Sequence[Inflection], width: int = sys.maxsize) -> str:
    """Return the tables with aligned columns, and how many forms were left out.

    Args:
        cells: cells of one lemma.
        width: width of a terminal. If a table is wider, the forms of a cell take several lines.
    """
    blocks = [_section_text(section, width) for section in sections(cells)]
    left_out = left_out_of(cells)
    return "\n\n".join([*blocks, left_out] if left_out else blocks)


def _section_text(section: Section, width: int) -> str:
    """Return one table with its title."""
    rows: list[list[_Pieces]] = []
    if any(section.columns):
        rows.append([[""], *([column] for column in section.columns)])
    for name, line in section.lines():
        rows.append([[name], *([""] if cell is None else _pieces(cell) for cell in line)])
    limit = _column_limit(rows, width)
    lines = [
        line
        for row in rows
        for line in zip_longest(*(_wrapped(pieces, limit) for pieces in row), fillvalue="")
    ]
    widths = [max(map(terminal_width, column)) for column in zip(*lines, strict=True)]
    texts = [_aligned(line, widths) for line in lines]
    return "\n".join([section.title, *(f"{' ' * _GAP}{text}".rstrip() for text in texts)])


def _column_limit(rows: Sequence[Sequence[_Pieces]], width: int) -> int:
    """Return the largest limit on the widths of columns with which a table fits; 0 if none does.

    The first column, which has the names of the rows, keeps its width.
    """
    names, *widths = (
        max(terminal_width(" ".join(pieces)) for pieces in column)
        for column in zip(*rows, strict=True)
    )
    for limit in range(max(widths), 0, -1):
        if _GAP + names + sum(_GAP + min(limit, column) for column in widths) <= width:
            return limit
    return 0


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells of a line, filled with spaces up to the widths of their columns."""
    columns = zip(cells, widths, strict=True)
    return (" " * _GAP).join(cell + " " * (width - terminal_width(cell)) for cell, width in columns)


def _wrapped(pieces: _Pieces, width: int) -> list[str]:
    """Return the lines of a place; each has as many pieces as the width allows, at least one."""
    line, *others = pieces
    lines = [line]
    for piece in others:
        longer = f"{lines[-1]} {piece}"
        if terminal_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(piece)
    return lines


def terminal_width(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    Combining marks and format characters take none, wide East Asian characters take two.
    """
    width = 0
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width
