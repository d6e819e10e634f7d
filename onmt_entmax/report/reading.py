"""Read an exactness report, which may be a stranger's: every field that is used is checked."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.report.records import Record
from onmt_entmax.rules import FLAG, Rule, one_of, whole
from onmt_entmax.search.certificate import Level

_EXCESS = 2e-5  # by which rounding may lift a sum of float32 probabilities and a slack above 1
_COUNT = whole(0, 10**15)
_PROBABILITY = Rule(float, 0, 1 + _EXCESS)
# None stands for the logarithm of 0, which JSON has not. log(1 + x) is at most x.
_LOG_PROBABILITY = Rule(float, -1e9, _EXCESS, off=None)
_TEXT = Rule(str)
_OBJECT = Rule(dict)


@dataclass(frozen=True)
class _Fields:
    """Fields of a JSON object, with the rule of each; the object may have others, which are unread.

    Attributes:
        always: those that every such object has.
        sometimes: those that only some have.
    """

    always: Mapping[str, Rule]
    sometimes: Mapping[str, Rule] = field(default_factory=dict)

    def fits(self, content: Any) -> bool:
        """Return whether a value is an object whose fields follow their rules."""
        if not isinstance(content, dict) or not self.always.keys() <= content.keys():
            return False
        rules = {**self.always, **self.sometimes}
        return all(rule.fits(content[name]) for name, rule in rules.items() if name in content)


_RECORD = _Fields(
    always={
        "id": _COUNT,
        "source": _TEXT,
        "certificate": one_of(*get_args(Level)),
        "bound": _PROBABILITY,
        "mass": _PROBABILITY,
        "finished": _COUNT,
        "hypotheses": Rule(list),
    },
    sometimes={
        "excluded": _PROBABILITY,
        "slack": _PROBABILITY,
        "unfinished": _TEXT,
        "abstained": FLAG,
        "source_tokens": _COUNT,
        "unknown": _OBJECT,
        "unseen": _OBJECT,
        "mbr": _OBJECT,
    },
)
_HYPOTHESIS = _Fields(
    always={"text": _TEXT, "prob": _PROBABILITY},
    sometimes={"tokens": _TEXT, "log_prob": _LOG_PROBABILITY},
)
_RANKED = _Fields(always={"text": _TEXT})  # a text by expected utility


def read_report(path: Path, sentences: int | None = None) -> Iterator[Record]:
    """Read the records of an exactness report, as `answer_record` writes them.

    Args:
        path: path of the report.
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
    """Return a number of a report.

    Raises:
        ValueError: it is infinite or no number, which the page cannot hold.
    """
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(word)
    return number


def _is_record(record: Any) -> bool:
    """Return whether an object is a record of a report."""
    if not _RECORD.fits(record):
        return False
    hypotheses = record["hypotheses"]
    return (
        len(hypotheses) <= record["finished"]
        and all(map(_HYPOTHESIS.fits, hypotheses))
        and all(_is_token_counts(record.get(name, {})) for name in ("unknown", "unseen"))
        and ("mbr" not in record or _is_ranking(record["mbr"].get("ranking")))
    )


def _is_token_counts(counts: Mapping[str, Any]) -> bool:
    """Return whether an object has a count of at least 1 for each of its tokens."""
    return all(token and _COUNT.fits(count) and count > 0 for token, count in counts.items())


def _is_ranking(ranking: Any) -> bool:
    """Return whether an object is a ranking by expected utility, whose first text is read."""
    return isinstance(ranking, list) and bool(ranking) and _RANKED.fits(ranking[0])
