"""Reading an exactness report: a record with a field that no search can write is refused."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.report.reading import read_report
from tests.report.pages import record

RECORD = record(0, "s a t", {"s i t": 1.0}, "exhaustive")


def with_hypothesis(**changes: float | None) -> dict[str, Any]:
    """Return the record with some fields of its only hypothesis changed."""
    (hypothesis,) = RECORD["hypotheses"]
    return RECORD | {"hypotheses": [hypothesis | changes]}


def write_report(folder: Path, content: Mapping[str, Any]) -> Path:
    """Write a report of one record; return its path."""
    path = folder / "report"
    path.write_text(json.dumps(content) + "\n")
    return path


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(RECORD, id="unchanged"),
        pytest.param(
            with_hypothesis(prob=1.00001, log_prob=1e-5), id="a sum of rounded probabilities"
        ),
        pytest.param(with_hypothesis(prob=0.0, log_prob=None), id="the logarithm of 0"),
        pytest.param(
            with_hypothesis(prob=0.0, log_prob=-800.0), id="a probability too small for a float"
        ),
        pytest.param(RECORD | {"of another program": [1]}, id="a field that is not used"),
    ],
)
def test_a_record_is_read_as_it_was_written(tmp_path: Path, content: dict[str, Any]) -> None:
    assert list(read_report(write_report(tmp_path, content))) == [content]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(with_hypothesis(prob=1.1), id="a probability above 1"),
        pytest.param(with_hypothesis(prob=-0.1), id="a probability below 0"),
        pytest.param(with_hypothesis(log_prob=0.1), id="the logarithm of more than 1"),
        pytest.param(RECORD | {"bound": 1.1}, id="a bound above 1"),
        pytest.param(RECORD | {"bound": "0"}, id="a text for a number"),
        pytest.param(RECORD | {"finished": True}, id="a boolean for a count"),
        pytest.param(RECORD | {"finished": 0}, id="more hypotheses than are finished"),
        pytest.param(RECORD | {"certificate": "proved"}, id="an unknown level"),
        pytest.param(RECORD | {"unseen": {"ö": 0}}, id="a token that occurs 0 times"),
        pytest.param(
            {name: value for name, value in RECORD.items() if name != "mass"}, id="a missing field"
        ),
        pytest.param([RECORD], id="a list"),
    ],
)
def test_what_is_not_a_record_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(UserError, match="report:1: not a record of an -exactness_report"):
        list(read_report(write_report(tmp_path, content)))
