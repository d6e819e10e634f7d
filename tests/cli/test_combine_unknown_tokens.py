"""`onmt-entmax combine`: the source tokens that models did not know, in records and summary."""

from pathlib import Path

import pytest

from tests.cli.combining import Record, average, summary_of_average
from tests.reports import record

# Records of three models for one source. `BEST` knows both source tokens, and `SOME` one of them;
# `WORST`, whose subwords divide the source into three tokens, knows none.
BEST = record("s t", "exhaustive", ("a", 1.0), source_tokens=2, unseen={"t": 1})
SOME = record("s t", "exhaustive", ("a", 1.0), source_tokens=2, unknown={"s": 1})
WORST = record(
    "s t", "exhaustive", ("a", 1.0), source_tokens=3, unknown={"s": 1, "t": 2}, unseen={"s": 1}
)


@pytest.fixture(
    params=[(BEST, SOME, WORST), (WORST, SOME, BEST), (SOME, WORST, BEST)],
    ids=["worst last", "worst first", "worst between"],
)
def averaged(request: pytest.FixtureRequest, tmp_path: Path) -> Record:
    """The record of the average of all three models, in several orders."""
    return average(tmp_path, *request.param)


def test_an_average_has_the_unknown_tokens_of_the_worst_model(averaged: Record) -> None:
    assert (averaged["unknown"], averaged["unseen"]) == ({"s": 1, "t": 2}, {"s": 1})


def test_an_average_has_the_number_of_source_tokens_of_the_worst_model(averaged: Record) -> None:
    """Unknown tokens are counted as a share of these."""
    assert averaged["source_tokens"] == 3


@pytest.mark.usefixtures("averaged")
def test_the_summary_of_an_average_has_the_tokens_of_the_worst_model(tmp_path: Path) -> None:
    summary = summary_of_average(tmp_path)
    assert (summary["source_tokens"], summary["unknown_tokens"]) == (3, 3)
