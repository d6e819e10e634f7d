"""Reports are read field by field: what no model can have reported is refused."""

import json
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.report.reading import read_report
from tests.report.pages import record

CERTAIN = record(0, "s a t", {"s i t": 1.0}, "exhaustive")


def write_report(folder: Path, **changes: float | None) -> Path:
    """Write a report of one certain line; return its path.

    Args:
        folder: to write in.
        changes: fields of its only hypothesis.
    """
    (hypothesis,) = CERTAIN["hypotheses"]
    path = folder / "report"
    path.write_text(json.dumps({**CERTAIN, "hypotheses": [hypothesis | changes]}) + "\n")
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"prob": 1.00001, "log_prob": 1e-5},  # a sum of rounded probabilities
        {"prob": 0.0, "log_prob": None},  # log(0)
        {"prob": 0.0, "log_prob": -800.0},  # too small for a float
    ],
)
def test_probabilities_are_read_with_their_rounding(
    tmp_path: Path, changes: dict[str, float | None]
) -> None:
    (read,) = read_report(write_report(tmp_path, **changes))
    assert read["hypotheses"][0].items() >= changes.items()


@pytest.mark.parametrize("changes", [{"prob": 1.1}, {"prob": -0.1}, {"log_prob": 0.1}])
def test_numbers_that_are_not_probabilities_are_refused(
    tmp_path: Path, changes: dict[str, float | None]
) -> None:
    with pytest.raises(UserError, match="report:1: not a record of an -exactness_report"):
        list(read_report(write_report(tmp_path, **changes)))
