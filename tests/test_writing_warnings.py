"""Warnings about how a query is written."""

import pytest

from onmt_entmax.strings.task import INFLECTION, Query
from onmt_entmax.writing_warnings import INFLECTION_NOUNS, WritingWarnings

CELLS = {"german": {("N", "PL"): 2, ("PL", "N"): 1, ("V", "PST"): 5}}
WARNINGS = WritingWarnings(INFLECTION, (), INFLECTION_NOUNS, CELLS)


@pytest.mark.parametrize(
    ("tags", "language", "warnings"),
    [
        pytest.param("PST;V", "german", ["V;PST"], id="another order"),
        pytest.param("V;PST", "german", [], id="that of training"),
        pytest.param("PL;N", "german", [], id="one of two in training"),
        pytest.param("N;PST", "german", [], id="never together"),
        pytest.param("PST;V", "dutch", [], id="another language"),
    ],
)
def test_another_order_of_tags_is_named(tags: str, language: str, warnings: list[str]) -> None:
    query = Query("ab", tuple(tags.split(";")), language)
    assert WARNINGS.of(query, (), has_unseen=False) == [
        f"training has these tags in another order: {order}" for order in warnings
    ]


@pytest.mark.parametrize("source", [" ab", "ab\u00a0"])
def test_a_space_at_an_end_is_named(source: str) -> None:
    (warning,) = WARNINGS.of(Query(source), (), has_unseen=False)
    assert warning == "the lemma begins or ends with a space"
