"""Reading an exactness report back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard, get_args

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.search.certificate import Level

_MOST = 1 + 2e-5  # what sums of float32 probabilities and a slack may come to


def read_report(path: Path) -> Iterator[dict[str, Any]]:
    """The records of an exactness report, as `Answer.record` has them, one after the other.

    Raises:
        UserError: the file cannot be read, has no line, or names the line that is no such record.
    """
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"{path}:{number}: not JSON; is it an -exactness_report?") from None
        if not _is_record(record):
            raise UserError(f"{path}:{number}: not a record of an -exactness_report")
        yield record
    if not number:
        raise UserError(f"{path}: the report is empty")


def is_blank(record: dict[str, Any]) -> bool:
    """Whether there was nothing to read in the line of a record."""
    return not record["source"].strip()


def is_only(record: dict[str, Any]) -> bool:
    """Whether no other string than the first has any probability, proven
    (`SearchResult.only`, of a record)."""
    alone = record["certificate"] == "exhaustive" and record["finished"] == 1
    return alone and not record.get("excluded")


def _is_record(record: object) -> bool:
    """Whether an object is what a report has for a sentence."""
    if not isinstance(record, dict):
        return False
    hypotheses, finished = record.get("hypotheses"), record.get("finished")
    return (
        _is_count(record.get("id"))
        and isinstance(record.get("source"), str)
        and record.get("certificate") in get_args(Level)
        and all(_is_probability(record.get(key)) for key in ("bound", "mass"))
        and all(_is_probability(record[key]) for key in ("excluded", "slack") if key in record)
        and isinstance(record.get("unfinished", ""), str)
        and isinstance(hypotheses, list)
        and all(map(_is_hypothesis, hypotheses))
        and _is_count(finished)
        and finished >= len(hypotheses)
    )


def _is_hypothesis(each: object) -> bool:
    return (
        isinstance(each, dict)
        and isinstance(each.get("text"), str)
        and _is_probability(each.get("prob"))
    )


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _is_probability(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= _MOST  # which a nan is not
