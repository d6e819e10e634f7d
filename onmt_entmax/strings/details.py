"""The columns that `predict --details` adds at the end of a table, and their values.

| column | values |
|---|---|
| rank | 1, 2, ... among the outputs of a row; empty for a row without an output |
| probability | probability of the output |
| certificate | what is proven about the outputs of the row: docs/certificates.md |
| warnings | why the outputs may be wrong, and how many are left out (`left_out_text`) |
"""

import re
from collections.abc import Sequence

from onmt_entmax.errors import counted

DETAILS = ("rank", "probability", "certificate", "warnings")
"""Names of these columns, in order"""
LEVELS = ("only", "exhaustive", "optimal", "none")
"""Values of the certificate, the strongest first"""
_RANK = re.compile(r"[0-9]*")


def has_details(table: Sequence[Sequence[str]]) -> bool:
    """Return whether all rows end with these columns, after at least one other.

    The rank and the certificate decide: hardly another table has a whole number and one of `LEVELS`
    in these places of every row.

    Args:
        table: cells of the rows, the first of which may be a heading.
    """
    if not table:
        return False
    has_heading = tuple(table[0][-len(DETAILS) :]) == DETAILS
    rows = table[1:] if has_heading else table
    return bool(rows) and all(map(_ends_with_details, rows))


def _ends_with_details(cells: Sequence[str]) -> bool:
    """Return whether a row ends with cells that may be details, after at least one other cell."""
    if len(cells) <= len(DETAILS):
        return False
    rank, _, certificate, _ = cells[-len(DETAILS) :]
    return certificate in LEVELS and _RANK.fullmatch(rank) is not None


def left_out_text(number: int, least: float, noun: str) -> str:
    """Return the warning that improbable outputs are left out: `12 forms below 0.01 left out`.

    Args:
        number: number of these outputs.
        least: least probability of outputs that are written.
        noun: what an output is called, such as `form`.
    """
    return f"{counted(number, noun)} below {least:g} left out"
