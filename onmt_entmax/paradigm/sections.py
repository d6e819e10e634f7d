"""Arrange the cells of a lemma in tables.

The dimensions of a cell's tags decide where it stands: some tags name its row, some its column, and
all others its table. For `N;NOM;SG`, `N;NOM;PL`, `N;ACC;SG` and `N;ACC;PL`:

    noun                    title: part of speech
                singular  plural      columns: number
    nominative  Hund      Hunde       rows: case
    accusative  Hund      Hunde
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.tags import (
    PART_OF_SPEECH,
    dimension_of,
    order_of,
    title_of,
    without_layers,
)

Tags = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One table of a paradigm: the cells that share the tags of its title.

    Attributes:
        title: names of these tags.
        columns: name of each column; a list of forms has one column without a name.
        rows: name of each row.
        cells: cells by number of row and of column, from 0; not every place has one.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: Mapping[tuple[int, int], Inflection] = field(repr=False)

    def lines(self) -> Iterator[tuple[str, list[Inflection | None]]]:
        """Yield the name of each row, and its cells."""
        for i, row in enumerate(self.rows):
            yield row, [self.cells.get((i, j)) for j in range(len(self.columns))]


class _Place(NamedTuple):
    """The place of a cell: the tags that name its section, its row and its column."""

    section: Tags
    row: Tags
    column: Tags


def sections(cells: Sequence[Inflection]) -> list[Section]:
    """Arrange the cells of one lemma in tables."""
    tables: dict[Tags, dict[tuple[Tags, Tags], Inflection]] = {}
    for cell in cells:
        place = _place(without_layers(cell.question.tags))
        title = place.section
        if (place.row, place.column) in tables.get(title, {}):
            # The same tags, layered in another way.
            title = (*title, ";".join(cell.question.tags))
        tables.setdefault(title, {})[place.row, place.column] = cell
    return [_section(title, tables[title]) for title in _ordered(tables)]


def _section(title: Tags, table: Mapping[tuple[Tags, Tags], Inflection]) -> Section:
    """Return one table.

    Args:
        title: the tags of all its cells.
        table: cells by the tags of row and column.
    """
    rows = _ordered(row for row, _ in table)
    columns = _ordered(column for _, column in table)
    return Section(
        title=title_of(title, ", "),
        columns=tuple(map(title_of, columns)),
        rows=tuple(map(title_of, rows)),
        cells={
            (rows.index(row), columns.index(column)): cell for (row, column), cell in table.items()
        },
    )


def _place(tags: Sequence[str]) -> _Place:
    """Return where a cell with these tags stands.

    The first of these dimensions that the tags have decides:

        case        rows are cases, columns are numbers (nouns)
        person      rows are persons, columns are tenses (finite verbs)
        number      rows are tenses, columns are genders (adjectives, participles)
        none        rows are all tags but the part of speech, in one column
    """
    by_dimension: dict[str, list[str]] = {}
    for tag in sorted(tags, key=order_of):
        by_dimension.setdefault(dimension_of(tag), []).append(tag)
    if "case" in by_dimension:
        rows, columns = ["case"], ["number"]
    elif "person" in by_dimension:
        rows, columns = ["number", "person", "gender", "politeness"], ["tense", "aspect"]
    elif "number" in by_dimension:
        rows, columns = ["definiteness", "tense", "aspect"], ["gender", "number"]
    else:  # a list of forms
        rows, columns = [name for name in by_dimension if name != PART_OF_SPEECH], []
    others = [name for name in by_dimension if name not in {*rows, *columns}]

    def tags_of(dimensions: Iterable[str]) -> Tags:
        return tuple(tag for name in dimensions for tag in by_dimension.get(name, ()))

    return _Place(tags_of(others), tags_of(rows), tags_of(columns))


def _ordered(headings: Iterable[Tags]) -> list[Tags]:
    """Return different headings in UniMorph's order of their tags."""
    return sorted(set(headings), key=lambda tags: [order_of(tag) for tag in tags])
