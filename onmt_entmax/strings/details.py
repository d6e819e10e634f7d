"""The columns that `predict --details` adds at the end of a table."""

import re
from collections.abc import Sequence

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
