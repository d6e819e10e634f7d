"""`Inflector`: inflections by small random models, with one form or with all that are possible."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.inflector import Inflection, InflectionError, Question
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.strings.units import decode_word
from onmt_entmax.translator import Translator
from tests.inflection_models import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random model; tests only read it."""
    return write_model(tmp_path_factory.mktemp("inflection") / "model", seed=22)


@pytest.fixture(scope="module")
def inflector(model: Path) -> Inflector:
    return Inflector([model])


# --- one form --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inflection(inflector: Inflector) -> Inflection:
    return inflector.inflect("german", "a b", "V;PST")


@pytest.fixture(scope="module")
def translation(model: Path) -> Answer:
    """The translation of the tokens of the same query, `german`, `a b` and `V;PST`."""
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
def endless(tmp_path: Path) -> Inflection:
    """The inflection by a model whose forms never end: it has no form."""
    model = write_model(tmp_path / "endless", seed=1, end=-100)
    return Inflector([model], max_length=5).inflect("german", "ab", "V")


def test_forms_that_never_end_are_not_listed(endless: Inflection) -> None:
    assert endless.forms == ()


def test_without_a_form_nothing_is_proven(endless: Inflection) -> None:
    assert endless.level == "none"


def test_without_a_form_there_is_a_warning(endless: Inflection) -> None:
    assert endless.warnings == ("no form ended within the length limit",)


# --- several forms ---------------------------------------------------------------------------

QUESTIONS = [Question("german", lemma, ("V",)) for lemma in ("a", "b", "ab", "ba", "bb")]


class Listings(NamedTuple):
    """The inflections of `QUESTIONS`."""

    best: list[Inflection]
    """With one form, as by default."""
    complete: list[Inflection]
    """With all possible forms."""


@pytest.fixture(scope="module")
def listings(tmp_path_factory: pytest.TempPathFactory) -> Listings:
    """The listings of a model by which some questions have only one possible form."""
    folder = write_model(tmp_path_factory.mktemp("few") / "model", seed=3, end=4)
    complete = list(Inflector([folder], n_best=0).answers(QUESTIONS))
    assert {inflection.level for inflection in complete} == {"only", "exhaustive"}
    return Listings(list(Inflector([folder]).answers(QUESTIONS)), complete)


def test_one_form_is_listed_by_default(listings: Listings) -> None:
    assert [len(inflection.forms) for inflection in listings.best] == [1] * len(QUESTIONS)


def test_only_depends_on_the_possible_forms_not_on_the_listed_ones(listings: Listings) -> None:
    is_only = [len(inflection.forms) == 1 for inflection in listings.complete]
    assert [inflection.only for inflection in listings.best] == is_only


def test_the_level_does_not_depend_on_the_number_of_forms_listed(listings: Listings) -> None:
    levels = [inflection.level for inflection in listings.complete]
    assert [inflection.level for inflection in listings.best] == levels


# --- as a transducer -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_forms(tmp_path_factory: pytest.TempPathFactory) -> Inflector:
    """An inflector that lists three forms."""
    folder = tmp_path_factory.mktemp("three-forms") / "model"
    return Inflector(write_model(folder, seed=22, end=0), n_best=3)


def test_an_inflector_predicts_as_a_transducer(three_forms: Inflector) -> None:
    outputs = three_forms.predict("ab", "V;PST", "german").outputs
    assert outputs == three_forms.inflect("german", "ab", "V;PST").forms
    assert len(outputs) == 3


def test_an_inflector_scores_as_a_transducer(three_forms: Inflector) -> None:
    for form in three_forms.inflect("german", "ab", "V;PST").forms:
        score = three_forms.score("ab", form.text, "V;PST", "german")
        assert score == pytest.approx(form.log_prob, abs=1e-5)
