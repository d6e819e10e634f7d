"""`Inflector`: inflections by small models, their JSON, and queries that are refused."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.inflector import Form, Inflection, InflectionError, Question
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.strings.units import decode_word
from onmt_entmax.translator import Translator
from tests.inflection_models import write_model
from tests.models import vocabularies_of

WITHOUT_TAGS = vocabularies_of(("lang=ady", "a"), "a")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random model; tests only read it."""
    return write_model(tmp_path_factory.mktemp("inflection") / "model", 22)


@pytest.fixture(scope="module")
def inflector(model: Path) -> Inflector:
    return Inflector([model])


# --- one form --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inflection(inflector: Inflector) -> Inflection:
    return inflector.inflect("german", "a b", "V;PST")


@pytest.fixture(scope="module")
def translation(model: Path) -> Answer:
    """The translation of the same query's tokens."""
    task = SearchTask(SearchConfig(beam_size=5))
    (translated,) = Translator.from_folders([model], task).answers(["lang=german +V +PST a ▁ b"])
    return translated


def test_a_form_is_the_translation_of_the_tokens(
    inflection: Inflection, translation: Answer
) -> None:
    (form,) = inflection.forms
    assert form.text == decode_word(translation.hypotheses[0].text.split())
    assert form.prob == pytest.approx(translation.hypotheses[0].hypothesis.prob, abs=1e-6)


def test_a_certificate_is_that_of_the_translation(
    inflection: Inflection, translation: Answer
) -> None:
    assert inflection.certificate.level == translation.result.certificate.level


def test_tags_may_be_a_list(inflector: Inflector, inflection: Inflection) -> None:
    assert inflector.inflect("german", "a b", ["V", "PST"]) == inflection


def test_without_a_model_it_names_the_pretrained_one() -> None:
    with pytest.raises(InflectionError, match=r"no model is named.*released.pretrained\(\)"):
        Inflector()


@pytest.fixture
def unfinished(tmp_path: Path) -> Inflection:
    """The inflection by a model whose forms never end."""
    endless = write_model(tmp_path / "endless", 1, end=-100)
    return Inflector([endless], max_length=5).inflect("german", "ab", "V")


def test_a_form_that_never_ends_is_no_form(unfinished: Inflection) -> None:
    assert unfinished.forms == ()


def test_without_a_form_nothing_is_proven(unfinished: Inflection) -> None:
    assert unfinished.level == "none"


def test_a_form_that_never_ends_is_warned_of(unfinished: Inflection) -> None:
    assert unfinished.warnings == ("no form ended within the length limit",)


# --- several forms ---------------------------------------------------------------------------

QUESTIONS = [Question("german", lemma, ("V",)) for lemma in ("a", "b", "ab", "ba", "bb")]


class Listings(NamedTuple):
    """The inflections of `QUESTIONS`: with one form, as by default, and with all possible ones."""

    best: list[Inflection]
    complete: list[Inflection]


@pytest.fixture(scope="module")
def listings(tmp_path_factory: pytest.TempPathFactory) -> Listings:
    """Some of the questions have only one possible form."""
    folder = write_model(tmp_path_factory.mktemp("few") / "model", 3, end=4)
    complete = list(Inflector([folder], n_best=0).answers(QUESTIONS))
    assert {inflection.level for inflection in complete} == {"only", "exhaustive"}
    return Listings(list(Inflector([folder]).answers(QUESTIONS)), complete)


def test_one_form_is_listed_by_default(listings: Listings) -> None:
    assert [len(inflection.forms) for inflection in listings.best] == [1] * len(QUESTIONS)


def test_only_is_said_of_all_possible_forms_not_of_those_listed(listings: Listings) -> None:
    is_only = [len(inflection.forms) == 1 for inflection in listings.complete]
    assert [inflection.only for inflection in listings.best] == is_only


def test_the_level_does_not_depend_on_the_number_of_forms_listed(listings: Listings) -> None:
    levels = [inflection.level for inflection in listings.complete]
    assert [inflection.level for inflection in listings.best] == levels


# --- as a transducer -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unsure(tmp_path_factory: pytest.TempPathFactory) -> Inflector:
    """An inflector that lists three forms, none of them with more than half of the probability."""
    return Inflector(write_model(tmp_path_factory.mktemp("unsure") / "model", 22, end=0), n_best=3)


def test_an_inflector_predicts_as_a_transducer(unsure: Inflector) -> None:
    outputs = unsure.predict("ab", "V;PST", "german").outputs
    assert outputs == unsure.inflect("german", "ab", "V;PST").forms
    assert len(outputs) == 3


def test_an_inflector_scores_as_a_transducer(unsure: Inflector) -> None:
    for form in unsure.inflect("german", "ab", "V;PST").forms:
        score = unsure.score("ab", form.text, "V;PST", "german")
        assert score == pytest.approx(form.log_prob, abs=1e-5)


# --- inflections as JSON ---------------------------------------------------------------------


@pytest.fixture
def several(model: Path) -> Inflection:
    """An inflection with several forms, to which an impossible one is added."""
    inflection = Inflector([model], n_best=3).inflect("german", "ab", "V;PST")
    assert len(inflection.forms) > 1
    return replace(inflection, forms=(*inflection.forms, Form("b", -math.inf, 0.0)))


@pytest.mark.parametrize("name", ["unfinished", "several"])
def test_an_inflection_survives_json(name: str, request: pytest.FixtureRequest) -> None:
    """JSON has neither infinity nor NaN."""
    content = request.getfixturevalue(name).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_json_has_all_forms(several: Inflection) -> None:
    forms = several.to_dict()["forms"]
    assert [form["form"] for form in forms] == [form.text for form in several.forms]


def test_the_logarithm_of_an_impossible_form_is_null(several: Inflection) -> None:
    assert several.to_dict()["forms"][-1] == {"form": "b", "prob": 0.0, "log_prob": None}


# --- languages without tags ------------------------------------------------------------------


@pytest.fixture(params=["only language", "beside another language"])
def untagged(request: pytest.FixtureRequest, tmp_path: Path) -> Inflector:
    """An inflector of a language without tags, ady."""
    vocabularies = WITHOUT_TAGS
    if request.param == "beside another language":
        tokens = vocabularies_of(("lang=ady", "lang=x", "+V", "a"), "a").source.tokens
        seen = {"lang=ady": frozenset("a"), "lang=x": frozenset({"+V", "a"})}
        vocabularies = Vocabularies(Vocabulary(tuple(tokens), seen), WITHOUT_TAGS.target)
    return Inflector([write_model(tmp_path / "model", 3, vocabularies, end=3)])


def test_languages_without_tags_are_listed(untagged: Inflector) -> None:
    assert untagged.untagged == ["ady"]


def test_a_language_without_tags_is_queried_without(untagged: Inflector) -> None:
    inflection = untagged.inflect("ady", "a", "")
    assert (inflection.question.tags, inflection.warnings) == ((), ())


def test_an_empty_text_has_no_tags(untagged: Inflector) -> None:
    assert untagged.inflect("ady", "a", "") == untagged.inflect("ady", "a", ())


@pytest.mark.parametrize("untagged", ["beside another language"], indirect=True)
def test_a_language_with_tags_is_not_queried_without(untagged: Inflector) -> None:
    with pytest.raises(InflectionError, match="there are no tags, but x has some"):
        untagged.inflect("x", "a", "")


@pytest.mark.parametrize("untagged", ["only language"], indirect=True)
def test_tags_of_a_language_without_any_are_refused(untagged: Inflector) -> None:
    with pytest.raises(InflectionError, match="ady has none: leave them out"):
        untagged.inflect("ady", "a", "V")


# --- malformed queries -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            ("germann", "a", "V"),
            "knows no language 'germann'; did you mean 'german'?",
            id="a misspelt language",
        ),
        pytest.param(
            ("geralt", "a", "V"),
            "knows no language 'geralt'; it knows english, german",
            id="an unknown language",
        ),
        pytest.param(("german", "", "V"), "the lemma is empty", id="no lemma"),
        pytest.param(("german", " ", "V"), "the lemma is empty", id="a space for the lemma"),
        pytest.param(("german", "a", "V;;PST"), "a tag is empty in 'V;;PST'", id="an empty tag"),
        pytest.param(
            ("german", "ab", "v;pst"), "no tag of 'v;pst'; did you mean V;PST?", id="small letters"
        ),
        pytest.param(
            ("german", "ab", "V PST"),
            "no tag of 'V PST'; did you mean V;PST?",
            id="a space between tags",
        ),
    ],
)
def test_a_malformed_query_is_refused_in_one_line(
    inflector: Inflector, query: tuple[str, str, str], message: str
) -> None:
    with pytest.raises(InflectionError) as raised:
        inflector.inflect(*query)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
