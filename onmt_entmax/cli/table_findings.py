"""Collect what `predict` reports about its tables: bad rows, likely headings, and their columns.

All tables are read before anything is reported. Messages would disturb the progress bar, and one
note can then stand for all tables of the same layout.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

from onmt_entmax.analogous_outputs import QueryAnalogies
from onmt_entmax.cli.bad_rows import LISTED, bad_row_line, bad_row_text, bad_rows_summary
from onmt_entmax.cli.query_tables import QueryTable
from onmt_entmax.errors import counted
from onmt_entmax.strings.cells import Combinations
from onmt_entmax.strings.column_names import column_of, may_name_source
from onmt_entmax.strings.tables import BadRow, Layout, Row
from onmt_entmax.strings.task import TAGS


@dataclass
class _AlikeTables:
    """Tables of one layout; either all of them have targets, or none has.

    Attributes:
        first_target: the first target of the first table; empty if the tables have no targets.
        names: names of the tables.
    """

    first_target: str
    names: list[str] = field(default_factory=list)


class TableFindings:
    """Collects the messages about all tables.

    Args:
        bad_rows: file that receives the rows that cannot be read, or None.
        analogies: analogies that vote on the rows, or None.
        combinations: the combinations of tags that training had.

    Attributes:
        warnings: warnings about likely headings and about the first bad rows.
    """

    def __init__(
        self,
        bad_rows: TextIO | None,
        analogies: QueryAnalogies | None,
        combinations: Combinations,
    ) -> None:
        self._bad_rows = bad_rows
        self._analogies = analogies
        self._combinations = combinations
        self.warnings: list[str] = []
        self._bad = 0
        self._total = 0
        self._without_analogies = 0
        self._with_new_combination = 0
        # By layout, and whether the tables have targets.
        self._alike: dict[tuple[Layout, bool], _AlikeTables] = {}

    def add_bad_row(self, table: QueryTable, row: BadRow) -> None:
        """Count a row that cannot be read, and write it; warn of the first ones."""
        self._total += 1
        self._bad += 1
        if self._bad <= LISTED:
            self.warnings.append(bad_row_text(table.name, row))
        if self._bad_rows is not None:
            self._bad_rows.write(bad_row_line(table.name, row))

    def add_row(self, table: QueryTable, row: Row, *, first: bool) -> None:
        """Count a row; warn if it is the first good row of its table, and may be a heading."""
        self._total += 1
        if self._analogies is not None and not self._analogies.has_words(row.query):
            self._without_analogies += 1
        if self._combinations.is_new(row.query.language, row.query.tags):
            self._with_new_combination += 1
        if first and not table.layout.heading and _may_be_heading(row, table.layout):
            cells = ", ".join(map(repr, row.cells))
            self.warnings.append(
                f"{table.name}:{row.number}: {cells} may be a heading; it is read as a row"
            )

    def add_layout(self, table: QueryTable, first_target: str) -> None:
        """Record how a table is read.

        Args:
            table: the table, after all of its rows were read.
            first_target: the first target in it; empty if it has no targets.
        """
        key = (table.layout, bool(first_target))
        self._alike.setdefault(key, _AlikeTables(first_target)).names.append(table.name)

    def bad_rows_summary(self) -> str:
        """Return how many rows cannot be read; empty if all can."""
        return bad_rows_summary(self._bad, self._total) if self._bad else ""

    def notes(self) -> Iterator[str]:
        """Yield a note for each layout, and one for each kind of unusual rows, if there are any.

        Unusual are known tags that training never combined, and rows on which no word of
        `--analogies` can vote.
        """
        yield from self._layout_notes()
        if self._with_new_combination:
            rows = f"{self._with_new_combination:,} of {self._total:,}"
            yield f"rows with a combination of tags that training never had: {rows}"
        if self._without_analogies:
            rows = f"{self._without_analogies:,} of {self._total:,}"
            yield f"--analogies: no training word has the language and tags of {rows} rows"

    def _layout_notes(self) -> Iterator[str]:
        """Yield a note for each layout: its first table, the number of others, and its columns."""
        for (layout, _), alike in self._alike.items():
            first, *others = alike.names
            more = f" and {counted(len(others), 'table')} more" if others else ""
            text = f"{first}{more}: {layout}"
            if alike.first_target:  # the user may have meant another column
                text += f"; targets, such as {alike.first_target!r}, are replaced"
            yield text


def _may_be_heading(row: Row, layout: Layout) -> bool:
    """Return whether the first row of a table has a name of a column, such as `word`.

    It may stand above another column than the sources, as in `id`, `word`. In a table with tags,
    the tags have already shown whether the row is a heading.
    """
    if TAGS in layout.columns:
        return may_name_source(row.query.source)
    return any(may_name_source(cell) or column_of(cell) is not None for cell in row.cells)
