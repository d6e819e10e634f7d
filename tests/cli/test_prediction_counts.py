"""Counts over the rows of a table, which `predict` prints at the end."""

import math
from collections.abc import Sequence

import pytest

from onmt_entmax.cli.output_layout import OutputLayout
from onmt_entmax.cli.prediction_counts import PredictionCounts
from onmt_entmax.prediction import Prediction
from onmt_entmax.proven_outputs import Output
from onmt_entmax.strings.tables import Layout, Row
from onmt_entmax.strings.task import Query
from tests.reports import certificate

PROB = 0.3  # of every output
BELOW, ABOVE = 0.2, 0.5  # values of `--least`, the probability that an output needs to be written


def count_rows(
    rows: Sequence[Sequence[str]],
    *,
    least: float = 0.0,
    level: str = "optimal",
    warnings: tuple[str, ...] = (),
) -> PredictionCounts:
    """Return the counts of rows, all of the source `ab`.

    Args:
        rows: the outputs of each row.
        least: the value of `--least`.
        level: level of each certificate.
        warnings: warnings of each row.
    """
    counts = PredictionCounts()
    layout = OutputLayout(Layout(("source",)), target_column=1, least=least)
    query = Query("ab")
    for number, texts in enumerate(rows, 1):
        outputs = tuple(Output(text, math.log(PROB), PROB) for text in texts)
        prediction = Prediction(query, outputs, certificate(level=level), warnings, only=False)
        counts.add(Row(number, query, "", ("ab",)), prediction, layout)
    return counts


# --- empty and missing outputs ---


def test_an_empty_output_that_is_written_gives_a_warning() -> None:
    counts = count_rows([[""], ["p"]])
    assert list(counts.warnings()) == ["rows with an empty output: 1 of 2"]


def test_an_empty_output_that_is_left_out_gives_no_warning() -> None:
    assert list(count_rows([[""]], least=ABOVE).warnings()) == []


def test_a_row_for_which_no_output_was_found_gives_a_warning() -> None:
    assert list(count_rows([[], ["p"]]).warnings()) == ["rows without an output: 1 of 2"]


# --- outputs below --least ---


def test_outputs_that_are_left_out_are_counted() -> None:
    counts = count_rows([["p", "t"], ["p"]], least=ABOVE)
    assert counts.left_out(ABOVE).startswith("3 outputs below 0.5 left out; ")


def test_rows_that_lose_all_outputs_are_counted() -> None:
    counts = count_rows([["p", "t"], []], least=ABOVE)
    assert counts.left_out(ABOVE).endswith("; rows that have no other: 1 of 2")


def test_outputs_that_are_probable_enough_are_not_counted() -> None:
    assert count_rows([["p"]], least=BELOW).left_out(BELOW) == "0 outputs below 0.2 left out"


# --- warnings of predictions ---


def test_the_first_row_with_warnings_is_quoted_and_all_are_counted() -> None:
    counts = count_rows([["p"], ["t"]], warnings=("unknown letter b", "mixed scripts"))
    expected = "ab: unknown letter b; mixed scripts (rows with warnings: 2 of 2)"
    assert list(counts.warnings()) == [expected]


# --- the summary and the record ---


def test_the_summary_has_the_share_of_each_level() -> None:
    summary = count_rows([["p"], ["t"], ["k"]]).summary()
    assert summary == "3 rows; only 0.00%, exhaustive 0.00%, optimal 100.00%, none 0.00%"


def test_the_summary_without_rows_has_no_shares() -> None:
    assert PredictionCounts().summary() == "0 rows"


@pytest.mark.parametrize("least", [BELOW, ABOVE], ids=["outputs written", "outputs left out"])
def test_counts_can_be_read_from_their_record(least: float) -> None:
    counts = count_rows([["p"], []], least=least, warnings=("mixed scripts",))
    assert PredictionCounts.read(counts.record()) == counts
