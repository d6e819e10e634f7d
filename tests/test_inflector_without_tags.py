"""`Inflector` with a language for which training had no tags."""

from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.inflector import InflectionError
from tests.inflection_models import write_model
from tests.models import vocabularies_of

WITHOUT_TAGS = vocabularies_of(("lang=ady", "a"), "a")


@pytest.fixture(params=["only language", "beside another language"])
def untagged(request: pytest.FixtureRequest, tmp_path: Path) -> Inflector:
    """An inflector with the language ady, which has no tags."""
    vocabularies = WITHOUT_TAGS
    if request.param == "beside another language":
        tokens = vocabularies_of(("lang=ady", "lang=x", "+V", "a"), "a").source.tokens
        seen = {"lang=ady": frozenset("a"), "lang=x": frozenset({"+V", "a"})}
        vocabularies = Vocabularies(Vocabulary(tuple(tokens), seen), WITHOUT_TAGS.target)
    return Inflector([write_model(tmp_path / "model", 3, vocabularies, end=3)])


def test_languages_without_tags_are_listed(untagged: Inflector) -> None:
    assert untagged.untagged == ["ady"]


def test_a_query_without_tags_has_no_warning(untagged: Inflector) -> None:
    inflection = untagged.inflect("ady", "a", "")
    assert (inflection.question.tags, inflection.warnings) == ((), ())


def test_an_empty_text_has_no_tags(untagged: Inflector) -> None:
    assert untagged.inflect("ady", "a", "") == untagged.inflect("ady", "a", ())


@pytest.mark.parametrize("untagged", ["beside another language"], indirect=True)
def test_a_query_without_tags_for_a_language_with_tags_is_refused(untagged: Inflector) -> None:
    with pytest.raises(InflectionError, match="there are no tags, but x has some"):
        untagged.inflect("x", "a", "")


@pytest.mark.parametrize("untagged", ["only language"], indirect=True)
def test_tags_of_a_language_without_any_are_refused(untagged: Inflector) -> None:
    with pytest.raises(InflectionError, match="ady has none: leave them out"):
        untagged.inflect("ady", "a", "V")
