"""Reading an exactness report back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.search.certificate import Level

_NUMBER = (int, float)
_KINDS = {
    "id": int,
    "source": str,
    "bound": _NUMBER,
    "mass": _NUMBER,
    "finished": int,
    "hypotheses": list,
}


def read_report(path: Path) -> Iterator[dict[str, Any]]:
    """The records of an exactness report, as `Answer.record` has them, one after the other.

    Raises:
        UserError: the file cannot be read, has no line, or names the line that is no such record.
    """
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        try:
            record = json.loads(line)
        except ValueError:
            raise UserError(f"{path}:{number}: not JSON; is it an -exactness_report?") from None
        if not _is_record(record):
            raise UserError(f"{path}:{number}: not a record of an -exactness_report")
        yield record
    if not number:
        raise UserError(f"{path}: the report is empty")


def _is_record(record: object) -> bool:
    """Whether an object is what a report has for a sentence."""

    def has(content: object, kinds: dict[str, Any]) -> bool:
        return isinstance(content, dict) and all(
            isinstance(content.get(key), kind) for key, kind in kinds.items()
        )

    return (
        isinstance(record, dict)
        and has(record, _KINDS)
        and record.get("certificate") in get_args(Level)
        and all(has(h, {"text": str, "prob": _NUMBER}) for h in record["hypotheses"])
    )
