"""Warnings about the order of a query's tags, and about spaces around its source."""

import pytest

from onmt_entmax.strings.task import INFLECTION, Query
from onmt_entmax.writing_warnings import INFLECTION_NOUNS, WritingWarnings

# How often training had each combination of tags, by language: N and PL in both orders.
CELLS = {"german": {("N", "PL"): 2, ("PL", "N"): 1, ("V", "PST"): 5}}
WARNINGS = WritingWarnings(INFLECTION, (), INFLECTION_NOUNS, CELLS)


@pytest.mark.parametrize(
    ("tags", "language", "warnings"),
    [
        pytest.param(
            "PST;V",
            "german",
            ["training has these tags in another order: V;PST"],
            id="an order that training lacks",
        ),
        pytest.param("V;PST", "german", [], id="the order of training"),
        pytest.param("PL;N", "german", [], id="one of two orders in training"),
        pytest.param("N;PST", "german", [], id="tags that training never had together"),
        pytest.param("PST;V", "dutch", [], id="a language without cells"),
    ],
)
def test_tags_in_another_order_than_in_training_give_a_warning(
    tags: str, language: str, warnings: list[str]
) -> None:
    query = Query("ab", tuple(tags.split(";")), language)
    assert WARNINGS.of(query, (), has_unseen=False) == warnings


@pytest.mark.parametrize("source", [" ab", "ab\u00a0"], ids=["a space", "a no-break space"])
def test_a_space_at_an_end_of_the_source_gives_a_warning(source: str) -> None:
    (warning,) = WARNINGS.of(Query(source), (), has_unseen=False)
    assert warning == "the lemma begins or ends with a space"
