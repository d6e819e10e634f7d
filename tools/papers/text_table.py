"""Tables of strings; `markdown.py` and `latex.py` write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of strings.

    Attributes:
        head: headings of the columns.
        rows: the rows below them, each with a cell for each heading.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        for row in self.rows:
            assert len(row) == len(self.head), f"{len(self.head)} headings, but a row {row}"
