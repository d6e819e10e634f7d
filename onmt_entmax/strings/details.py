"""The columns that `predict --details` adds at the end of a table, and their texts."""

import re
from collections.abc import Sequence

from onmt_entmax.errors import counted

DETAILS = ("rank", "probability", "certificate", "warnings")
LEVELS = ("only", "exhaustive", "optimal", "none")
"""What a certificate may say; the first says most"""
_RANK = re.compile(r"[0-9]*")  # a row without an output has none


def has_details(table: Sequence[Sequence[str]]) -> bool:
    """Whether all rows end with these columns, after at least one other.

    Args:
        table: cells of the rows, the first of which may be a heading.
    """
    if not table:
        return False
    has_heading = tuple(table[0][-len(DETAILS) :]) == DETAILS
    rows = table[1:] if has_heading else table
    return bool(rows) and all(map(_ends_with_details, rows))


def _ends_with_details(cells: Sequence[str]) -> bool:
    """Whether the last columns of a row have values that `predict` writes."""
    if len(cells) <= len(DETAILS):
        return False
    rank, _, certificate, _ = cells[-len(DETAILS) :]
    return certificate in LEVELS and _RANK.fullmatch(rank) is not None


def left_out_text(number: int, least: float, noun: str) -> str:
    """Return `12 forms below 0.01 left out`."""
    return f"{counted(number, noun)} below {least:g} left out"
