"""The parts into which `audit` divides a table: each is checked by a model of the others.

All forms of a cell (dreamed, dreamt) are in the same part, and so are equal rows:

    rows     go went V;PST     go went V;PST     dream dreamed V;PST     dream dreamt V;PST
    group    1                 1                 2                       3
    cell     1                 1                 2                       2

A part's own rows are the first of each group; the rows of the other parts, which a model is trained
on, are all of them.
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
_ROWS = 10  # that a part needs
_CELLS = 2  # different ones that a part needs
_Group = list[Row]
"""Equal rows"""


@dataclass(frozen=True)
class Part:
    """Rows of the table that one model checks, which did not see them.

    Attributes:
        folder: of its files and its model.
        train: rows of the other parts.
        held_out: its own rows; of equal rows, the first.
        copies: how many equal rows each of these is.
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
        UserError: says how many rows or cells are needed.
    """
    needed_rows, needed_cells = _ROWS * folds, _CELLS * folds
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
        rows: of the table.
        folders: one for each part.
        seed: of the division.
    """
    cells = _groups_by_cell(rows)
    random.Random(seed).shuffle(cells)
    by_part = [
        [group for cell in cells[number :: len(folders)] for group in cell]
        for number in range(len(folders))
    ]
    for folder, groups in zip(folders, by_part, strict=True):
        others = [group for other in by_part if other is not groups for group in other]
        yield Part(
            folder,
            train=[row for group in others for row in group],
            held_out=[group[0] for group in groups],
            copies=list(map(len, groups)),
        )


def _groups_by_cell(rows: Sequence[Row]) -> list[list[_Group]]:
    """Return the groups of equal rows of each cell, in the order of the table."""
    cells: dict[object, dict[object, _Group]] = {}
    for row in rows:
        cells.setdefault(cell_of(row), {}).setdefault((row.query, row.target), []).append(row)
    return [list(groups.values()) for groups in cells.values()]
