"""Tables of texts, and their Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """A table of texts.

    Attributes:
        head: headings of the columns.
        rows: cells of each row below them.
    """

    head: list[str]
    rows: list[list[str]]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, whose columns are right-aligned but for the first."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    cells.insert(1, ["---", *["---:"] * (len(head) - 1)])
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)
