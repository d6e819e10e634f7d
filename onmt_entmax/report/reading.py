"""Read an exactness report."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard, get_args

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.report.measures import Counts, is_only
from onmt_entmax.search.certificate import Level

_MOST = 1 + 2e-5  # a sum of float32 probabilities and a slack may exceed 1


def read_report(path: Path, sentences: int | None = None) -> Iterator[dict[str, Any]]:
    """Read the records of an exactness report, as `Answer.record` writes them.

    Args:
        path: of the report.
        sentences: how many records it must have, if that is known.

    Raises:
        UserError: if the file cannot be read, has no line, a line is not such a record, or there
            are more or fewer records.
    """
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        try:
            record = json.loads(line, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError):
            raise UserError(f"{path}:{number}: not JSON; is it an -exactness_report?") from None
        if not _is_record(record):
            if isinstance(record, dict) and "samples" in record:
                raise UserError(f"{path}:{number}: a record of samples, which have no certificate")
            raise UserError(f"{path}:{number}: not a record of an -exactness_report")
        yield record
    if not number:
        raise UserError(f"{path}: the report is empty")
    if sentences is not None and number != sentences:
        raise UserError(f"{path}: {counted(number, 'record')}, expected {sentences:,}")


def _finite(word: str) -> float:
    if not math.isfinite(number := float(word)):
        raise ValueError(word)  # the page cannot hold it
    return number


def is_blank(record: dict[str, Any]) -> bool:
    """Tell whether a record is that of a blank line."""
    return not record["source"].strip()


def count_record(counts: Counts, record: dict[str, Any]) -> None:
    """Count the sentence of a record."""
    if is_blank(record):
        counts.blank += 1
        return
    listed = record["hypotheses"]
    best = listed[0]["text"] if listed else None
    counts.count(record["certificate"], record["finished"], best, is_only(record))
    counts.abstained += record.get("abstained", False)
    language = record["source"].split()[0]  # if tokens are unseen
    unseen = {(language, token): number for token, number in record.get("unseen", {}).items()}
    counts.source.add(record.get("source_tokens", 0), record.get("unknown", {}), unseen)


def _is_record(record: object) -> bool:
    """Tell whether an object is a record of a report."""
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
        and isinstance(record.get("abstained", False), bool)
        and _is_count(record.get("source_tokens", 0))
        and all(_are_counts(record.get(name, {})) for name in ("unknown", "unseen"))
        and isinstance(hypotheses, list)
        and all(map(_is_hypothesis, hypotheses))
        and _is_count(finished)
        and finished >= len(hypotheses)
        and ("mbr" not in record or _is_decision(record["mbr"]))
    )


def _is_decision(value: object) -> bool:
    ranking = value.get("ranking") if isinstance(value, dict) else None
    first = ranking[0] if isinstance(ranking, list) and ranking else None
    return isinstance(first, dict) and isinstance(first.get("text"), str)


def _is_hypothesis(each: object) -> bool:
    return (
        isinstance(each, dict)
        and all(isinstance(text, str) for text in (each.get("text"), each.get("tokens", "")))
        and _is_probability(each.get("prob"))
        and (each.get("log_prob") is None or _is_probability(each["log_prob"], least=-1e9))
    )


def _are_counts(value: object) -> bool:
    return isinstance(value, dict) and all(
        token and _is_count(number) and number > 0 for token, number in value.items()
    )


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 10**15


def _is_probability(value: object, least: float = 0.0) -> bool:
    """Tell whether a value is a probability, or with another `least` its logarithm."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return least <= value <= _MOST  # false for nan
