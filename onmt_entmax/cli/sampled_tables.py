"""The first lines of tables, which show their columns and separators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.files import read_lines, refuse_stream
from onmt_entmax.strings.guessing import SAMPLE
from onmt_entmax.strings.tables import Layout, readable_cells
from onmt_entmax.strings.task import TARGET

_SPLIT_WITHOUT_TARGETS = "test"  # shared tasks publish it before its targets


def may_lack_targets(file: SplitFile) -> bool:
    """Return whether a table may have no targets, since it is of the test set."""
    return file.split == _SPLIT_WITHOUT_TARGETS


@dataclass(frozen=True)
class Sample:
    """The first lines of a table whose columns are not known yet.

    Attributes:
        file: path, split and language of the table.
        lines: at most `SAMPLE` lines.
    """

    file: SplitFile
    lines: Sequence[str]

    @classmethod
    def read(cls, file: SplitFile) -> Sample:
        """Read the first lines of a table.

        Raises:
            UserError: the file cannot be read, or cannot be read a second time.
        """
        refuse_stream(file.path)
        return cls(file, list(islice(read_lines(file.path), SAMPLE)))

    @property
    def name(self) -> str:
        """The name of the table in messages."""
        return str(self.file.path)


@dataclass(frozen=True)
class SampledTable:
    """A table whose columns are known, with the cells of its first lines.

    Attributes:
        file: path, split and language of the table.
        layout: its columns.
        cells: the cells of each column in these lines; empty if no line is a row.
    """

    file: SplitFile
    layout: Layout
    cells: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, sample: Sample, layout: Layout) -> SampledTable:
        """Return a table with the layout that its sample shows."""
        return cls(sample.file, layout, _cells_by_column(sample.lines, layout))

    @property
    def has_targets(self) -> bool:
        """Whether rows need a target: they do, except in a test set whose first lines have none."""
        return not may_lack_targets(self.file) or any(self.cells.get(TARGET, ()))


def _cells_by_column(lines: Sequence[str], layout: Layout) -> dict[str, tuple[str, ...]]:
    """Return the cells of each column in the lines that are rows; empty if there are no rows."""
    table = readable_cells(layout, filter(str.strip, lines))
    if layout.heading:
        table = table[1:]
    rows = [cells for cells in table if len(cells) == len(layout.columns)]
    if not rows:
        return {}
    return dict(zip(layout.columns, zip(*rows, strict=True), strict=True))
