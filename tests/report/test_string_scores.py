"""Counts behind accuracy and error rate: predictions of queries with several gold targets."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.report.string_counts import QueryCounts
from onmt_entmax.report.string_scores import TablePrediction, score_strings
from onmt_entmax.strings.task import Query
from onmt_entmax.strings.units import CHARACTERS, Unit
from tests.edit_distance import edit_distance

TEXT = st.lists(st.sampled_from(["a", "b", "ts"]), min_size=1, max_size=4).map(" ".join)
# Queries: the gold targets of each, and its prediction.
QUERIES = st.lists(st.tuples(st.lists(TEXT, min_size=1, max_size=3), TEXT), min_size=1, max_size=4)
Queries = list[tuple[list[str], str]]
Split = Callable[[str], list[str]]

# A unit of targets, and a function that divides a text into units of this kind.
each_unit = pytest.mark.parametrize(
    ("unit", "split"),
    [
        pytest.param(Unit.between(" "), str.split, id="symbols"),
        pytest.param(CHARACTERS, list, id="characters"),
    ],
)


def counts_of(queries: Queries, unit: Unit) -> QueryCounts:
    """Return the counts of all queries."""
    keys = [Query(str(number), (), "x") for number in range(len(queries))]
    gold = {key: targets for key, (targets, _) in zip(keys, queries, strict=True)}
    predictions = {key: TablePrediction(text) for key, (_, text) in zip(keys, queries, strict=True)}
    return score_strings(gold, predictions, unit).total


def nearest_target(targets: list[str], text: str, split: Split) -> str:
    """Return the gold target that is nearest to a prediction; of several, the longest."""
    longest_first = sorted(targets, key=lambda target: len(split(target)), reverse=True)
    return min(longest_first, key=lambda target: edit_distance(split(target), split(text)))


@each_unit
@given(queries=QUERIES)
def test_the_distance_to_the_nearest_gold_target_counts(
    queries: Queries, unit: Unit, split: Split
) -> None:
    expected = sum(
        min(edit_distance(split(target), split(text)) for target in targets)
        for targets, text in queries
    )
    assert counts_of(queries, unit).distance == expected


@each_unit
@given(queries=QUERIES)
def test_the_length_of_the_nearest_gold_target_counts(
    queries: Queries, unit: Unit, split: Split
) -> None:
    expected = sum(len(split(nearest_target(*query, split))) for query in queries)
    assert counts_of(queries, unit).length == expected


@given(queries=QUERIES)
def test_a_prediction_is_right_if_it_is_one_of_the_gold_targets(queries: Queries) -> None:
    expected = sum(text in targets for targets, text in queries)
    assert counts_of(queries, CHARACTERS).right == expected
