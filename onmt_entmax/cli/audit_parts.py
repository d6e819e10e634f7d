"""Divide the table of `audit` into parts; a model trained on the other parts checks each.

All forms of a cell (dreamed, dreamt) are in the same part, and equal rows form a group:

    row                     group   cell
    go      went     V;PST  1       1
    go      went     V;PST  1       1
    dream   dreamed  V;PST  2       2
    dream   dreamt   V;PST  3       2

Of each group, only the first row is checked. A model is trained on all rows of the other parts.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.cli.audited_rows import cell_of
from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import Row

FOLDS = 5
"""Parts, if the user names no number"""
# Smallest size of a part.
_LEAST_ROWS = 10
_LEAST_CELLS = 2

_Group = list[Row]
"""Equal rows"""


@dataclass(frozen=True)
class Part:
    """Rows that a model checks after a training on the rows of the other parts.

    Attributes:
        folder: folder for its files and its model.
        train: rows of the other parts.
        held_out: rows to check: the first row of each group.
        copies: number of rows of each group.
    """

    folder: Path
    train: Sequence[Row]
    held_out: Sequence[Row]
    copies: Sequence[int]


def part_folders(out: Path, folds: int) -> list[Path]:
    """Return the folder of each of `folds` parts, below the folder of the audit."""
    return [out / f"part-{number}" for number in range(1, folds + 1)]


def refuse_few(rows: Sequence[Row], folds: int, file: Path) -> None:
    """Refuse a table that is too small for so many parts.

    Raises:
        UserError: names the number of rows or cells that it needs.
    """
    needed_rows, needed_cells = _LEAST_ROWS * folds, _LEAST_CELLS * folds
    if len(rows) < needed_rows:
        raise UserError(
            f"{file}: {needed_rows} rows or more are needed for {folds} --folds, not {len(rows)}"
        )
    cells = len({cell_of(row) for row in rows})
    if cells < needed_cells:
        raise UserError(
            f"{file}: {needed_cells} different cells or more are needed for {folds} --folds, not "
            f"{cells}"
        )


def parts_of(rows: Sequence[Row], folders: Sequence[Path], seed: int) -> Iterator[Part]:
    """Divide the cells of a table into parts, at random.

    Args:
        rows: rows of the table.
        folders: folder of each part.
        seed: seed of the random division.

    Returns:
        An iterator that makes each part when it reaches it, since a part lists all rows.
    """
    cells = _groups_by_cell(rows)
    random.Random(seed).shuffle(cells)
    groups_by_part = [
        [group for cell in cells[number :: len(folders)] for group in cell]
        for number in range(len(folders))
    ]
    return (_part(folder, number, groups_by_part) for number, folder in enumerate(folders))


def _part(folder: Path, number: int, groups_by_part: Sequence[Sequence[_Group]]) -> Part:
    """Return one of the parts.

    Args:
        folder: its folder.
        number: index of the part.
        groups_by_part: the groups of all parts.
    """
    held_out = groups_by_part[number]
    training = [
        group for other, groups in enumerate(groups_by_part) if other != number for group in groups
    ]
    return Part(
        folder,
        train=[row for group in training for row in group],
        held_out=[group[0] for group in held_out],
        copies=list(map(len, held_out)),
    )


def _groups_by_cell(rows: Sequence[Row]) -> list[list[_Group]]:
    """Return the groups of equal rows of each cell, in the order of the table."""
    cells: dict[object, dict[object, _Group]] = {}
    for row in rows:
        cells.setdefault(cell_of(row), {}).setdefault((row.query, row.target), []).append(row)
    return [list(groups.values()) for groups in cells.values()]
