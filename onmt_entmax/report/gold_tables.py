"""Read gold tables of strings: the targets that count as right for each query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from onmt_entmax.files import read_lines
from onmt_entmax.report.table_reading import TableReading, refuse_without_gold_target, table_rows
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.heading_checks import heading_rows
from onmt_entmax.strings.languages import language_of_file
from onmt_entmax.strings.misplaced_tags import refuse_misplaced_tags
from onmt_entmax.strings.own_headings import own_heading
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query, StringTask

ALL = "all"
"""Language of a table that has none"""


@dataclass
class Gold:
    """The gold targets of tables.

    Attributes:
        reading: how the tables are read.
        targets: gold targets by query; without a column of languages, the queries of a table have
            the language of the table.
        table_languages: the language of each table by the name of its file, or `ALL`.
        columns: columns of the last table; predicted tables should have the same.
        heading: the heading of the last table, if its names are not the usual ones of its columns;
            else empty.
        heading_warnings: warnings about rows that look like headings.
    """

    reading: TableReading
    targets: dict[Query, tuple[str, ...]] = field(default_factory=dict)
    table_languages: list[str] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    heading: tuple[str, ...] = ()
    heading_warnings: list[str] = field(default_factory=list)

    @property
    def heading_for_predictions(self) -> tuple[str, ...]:
        """The heading of gold tables, or of the model's tables with the same columns."""
        task = self.reading.task
        return self.heading or (task.heading if task.columns == self.columns else ())

    def add(self, row: Row) -> None:
        """Add the target of a row to those of its query, each once."""
        targets = self.targets.get(row.query, ())
        if row.target not in targets:
            self.targets[row.query] = (*targets, row.target)

    def several_targets_text(self) -> str:
        """Return how many queries have several targets; empty if none has."""
        several = sum(len(targets) > 1 for targets in self.targets.values())
        if not several:
            return ""
        return f"queries with several gold targets: {several:,} of {len(self.targets):,}"


def read_gold(paths: Sequence[Path], reading: TableReading) -> Gold:
    """Return the gold targets of tables.

    Args:
        paths: paths of the tables.
        reading: how they are read.

    Raises:
        UserError: a row cannot be read, or a table has no targets.
    """
    gold = Gold(reading)
    for path in paths:
        sample = list(islice(read_lines(path), SAMPLE))
        layout = guess_layout(sample, str(path), reading.columns, task=reading.task)
        refuse_misplaced_tags(sample, layout, reading.task, known_tags=reading.tags, name=str(path))
        refuse_without_gold_target(path, layout)
        language = language_of_file(path.name) or ALL
        first_rows: list[Row] = []
        for row in table_rows(path, layout, reading.task, language, needs_target=True):
            gold.add(row)
            if len(first_rows) < SAMPLE:
                first_rows.append(row)
        gold.heading_warnings += _heading_warnings(path, first_rows, reading.task)
        gold.table_languages.append(language)
        gold.columns, gold.heading = layout.columns, own_heading(layout)
    return gold


def _heading_warnings(path: Path, rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield a warning for each of the first rows of a table that looks like a heading."""
    for row in heading_rows(rows, task):
        cells = ", ".join(map(repr, row.cells))
        yield f"{path}:{row.number}: {cells} may be a heading; it counts as a query"
