"""Counts over the rows of a table, which `predict` prints at the end."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli.output_layout import OutputLayout
from onmt_entmax.cli.prediction_counts import PredictionCounts
from onmt_entmax.proven_outputs import Output
from onmt_entmax.strings.tables import Layout, Row


def counts_of_one_row(model: Path, output: str, *, least: float) -> PredictionCounts:
    """Return the counts of a row with a single output, of probability 0.3."""
    predicted = replace(
        Transducer(model).predict("ab"), outputs=(Output(output, math.log(0.3), 0.3),)
    )
    counts = PredictionCounts()
    layout = OutputLayout(Layout(("source",)), 1, least=least)
    counts.add(Row(1, predicted.query, "", ("ab",)), predicted, layout)
    return counts


def test_an_empty_output_that_is_written_is_warned_of(phones_model: Path) -> None:
    counts = counts_of_one_row(phones_model, "", least=0.0)
    assert list(counts.warnings()) == ["rows with an empty output: 1 of 1"]


def test_an_empty_output_that_is_left_out_is_not_warned_of(phones_model: Path) -> None:
    counts = counts_of_one_row(phones_model, "", least=0.5)
    assert list(counts.warnings()) == []


def test_an_output_that_is_left_out_is_counted(phones_model: Path) -> None:
    """Its row has no other one."""
    counts = counts_of_one_row(phones_model, "p", least=0.5)
    assert counts.left_out(0.5) == "1 output below 0.5 left out; rows that have no other: 1 of 1"


@pytest.mark.parametrize("least", [0.0, 0.5])
def test_counts_can_be_read_from_their_record(phones_model: Path, least: float) -> None:
    counts = counts_of_one_row(phones_model, "p", least=least)
    assert PredictionCounts.read(counts.record()) == counts


def test_without_rows_there_are_no_shares() -> None:
    assert PredictionCounts().summary() == "0 rows"
