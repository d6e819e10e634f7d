"""Queries that the page of `serve` sends become queries of models."""

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.page_queries import PageQueries, ParadigmQuery
from onmt_entmax.strings.task import INFLECTION, TRANSLATION, Query


def unchanged(query: Query) -> Query:
    """Return a query as models that can answer it all would."""
    return query


INFLECTIONS = PageQueries(INFLECTION, check=unchanged)
WORD = {"source": "kitap", "language": "turkish"}


def test_a_query_for_a_word_has_its_tags_and_its_language() -> None:
    query = INFLECTIONS.query(WORD | {"tags": "N;ACC;SG"})
    assert query == Query("kitap", ("N", "ACC", "SG"), "turkish")


def test_a_model_without_languages_and_tags_reads_neither() -> None:
    query = PageQueries(TRANSLATION, check=unchanged).query(WORD | {"tags": "N;ACC;SG"})
    assert query == Query("kitap")


def test_a_query_is_as_the_check_of_the_models_returns_it() -> None:
    queries = PageQueries(INFLECTION, check=lambda query: query._replace(language="tur"))
    assert queries.query(WORD).language == "tur"


def test_a_query_for_a_paradigm_has_a_part_of_speech() -> None:
    query = INFLECTIONS.paradigm(WORD | {"pos": "N"})
    assert query == ParadigmQuery(language="turkish", lemma="kitap", pos="N")


@pytest.mark.parametrize("name", ["source", "lemma", "sentence"])
def test_pages_of_earlier_releases_have_other_names_for_the_source(name: str) -> None:
    assert INFLECTIONS.query({name: "kitap"}).source == "kitap"


def test_spaces_around_a_source_are_left_out() -> None:
    assert INFLECTIONS.query({"source": " kitap "}).source == "kitap"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param({"pos": 1}, "pos: expected a text", id="a number"),
        pytest.param({"pos": "\ud800"}, "pos: expected a text", id="half of a surrogate pair"),
        pytest.param({"pos": "N" * 101}, "pos: longer than 100 characters", id="too long"),
    ],
)
def test_a_field_that_is_no_short_text_is_refused(field: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        INFLECTIONS.paradigm({**WORD, **field})
