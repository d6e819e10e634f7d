"""Guess the columns of a table that has no column names: which one looks like tags?"""

import re
from collections.abc import Sequence

from onmt_entmax.strings.tables import TableError, width_of
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TAGS, TARGET

_CODE = r"(?=.*[A-Z])[A-Z0-9.+/(),{};|-]+"  # PST, or N|PL
# Patterns that most tags of a table match, tried in this order.
_LIKE_TAGS = (
    r".*;.*",  # V;PST
    r"\w+=.*",  # tense=PST
    _CODE,
)
# Positions of the tags, from 0: second in tables of SIGMORPHON 2016, third in UniMorph's.
_USUAL_POSITIONS = (1, 2)


def is_code(cell: str) -> bool:
    """Return whether a cell looks like tags in capitals, such as `PST` or `V;PST`."""
    return re.fullmatch(_CODE, cell) is not None


def guess_columns(
    table: Sequence[Sequence[str]], name: str, fallback: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns of a table.

    Args:
        table: cells of its rows, without a heading.
        name: name of the file, for errors.
        fallback: columns to assume if a guess is unclear and the table has as many.

    Raises:
        TableError: the columns are unclear.
    """
    width = width_of(table)
    rows = [cells for cells in table if len(cells) == width]
    if width == 2:
        return (SOURCE, TARGET)
    position = tags_position(rows) if width > 2 else None
    if position in _USUAL_POSITIONS:
        columns = [SOURCE, TARGET, *[LEFT_OUT] * (width - 3)]
        columns.insert(position, TAGS)
        return tuple(columns)
    if width == len(fallback) and position is None:  # tags in another column contradict them
        return tuple(fallback)
    raise TableError(f"{name}: {_why_unclear(rows)}")


def _why_unclear(rows: Sequence[Sequence[str]]) -> str:
    """Return why the columns of a table cannot be guessed, with a row as an example."""
    first = rows[0]
    if len(first) == 1:
        example = next((text for (text,) in rows if not text.startswith((";", "#"))), first[0])
        return (
            f"no tabs, commas or semicolons divide columns, as in {example!r}; write a tab between "
            "them, and remove comments"
        )
    return (
        f"unclear what its {len(first)} columns are, such as {' | '.join(first)!r}; name them, "
        "such as --columns source,target,tags,- (- leaves a column out)"
    )


def tags_position(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the position of the only column that mostly looks like tags; None if it is unclear.

    A pattern that fits a column in a usual position has priority over one that fits another column.
    """
    elsewhere = None
    for pattern in _LIKE_TAGS:
        likely = [
            position
            for position, column in enumerate(zip(*rows, strict=True))
            if 2 * sum(bool(re.fullmatch(pattern, cell)) for cell in column) > len(rows)
        ]
        if len(likely) != 1:
            continue
        (position,) = likely
        if position in _USUAL_POSITIONS:
            return position
        elsewhere = position
    return elsewhere
