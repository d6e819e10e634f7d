"""Accuracy and error rates of strings with several gold targets, by definition."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.report.string_scores import TablePrediction, score_strings
from onmt_entmax.strings.task import Query
from onmt_entmax.strings.units import CHARACTERS, Unit
from tests.edit_distance import edit_distance

TEXT = st.lists(st.sampled_from(["a", "b", "ts"]), min_size=1, max_size=4).map(" ".join)
# The gold targets of some queries, with a prediction of each.
PAIRS = st.lists(st.tuples(st.lists(TEXT, min_size=1, max_size=3), TEXT), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("unit", "split"),
    [
        pytest.param(Unit.between(" "), str.split, id="symbols"),
        pytest.param(CHARACTERS, list, id="characters"),
    ],
)
@given(pairs=PAIRS)
def test_rates_are_those_of_the_definition(
    pairs: list[tuple[list[str], str]], unit: Unit, split: Callable[[str], list[str]]
) -> None:
    """The nearest gold target counts; of equally near ones, the longest."""
    queries = [Query(str(number), (), "x") for number in range(len(pairs))]
    gold = {query: targets for query, (targets, _) in zip(queries, pairs, strict=True)}
    predictions = {
        query: TablePrediction(text) for query, (_, text) in zip(queries, pairs, strict=True)
    }
    scores = score_strings(gold, predictions, unit)
    nearest = [
        min((edit_distance(split(target), split(text)), -len(split(target))) for target in targets)
        for targets, text in pairs
    ]
    assert scores.total.distance == sum(edits for edits, _ in nearest)
    assert scores.total.length == -sum(length for _, length in nearest)
    assert scores.total.right == sum(text in targets for targets, text in pairs)
