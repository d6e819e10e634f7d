"""The columns that `predict --details` adds at the end of a table, and their texts."""

import re
from collections.abc import Sequence

from onmt_entmax.errors import counted

DETAILS = ("rank", "probability", "certificate", "warnings")
LEVELS = ("only", "exhaustive", "optimal", "none")
"""What a certificate may say, the most first"""


def has_details(table: Sequence[Sequence[str]]) -> bool:
    """Whether rows, the first of which may be a heading, end with these columns."""
    rows = table[tuple(table[0][-len(DETAILS) :]) == DETAILS :] if table else ()
    return bool(rows) and all(
        len(cells) > len(DETAILS)
        and cells[-2] in LEVELS
        and re.fullmatch(r"[0-9]*", cells[-4]) is not None
        for cells in rows
    )


def left_out_text(number: int, least: float, noun: str) -> str:
    """Return `12 forms below 0.01 left out`."""
    return f"{counted(number, noun)} below {least:g} left out"
