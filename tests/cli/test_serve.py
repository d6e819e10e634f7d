"""The web application of `onmt-entmax serve`: its title, and answers about words and sentences."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.inflector import Inflector
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.translator import Translator
from tests.cli.serving import TASK, page_client
from tests.inflection_models import write_model
from tests.models import vocabularies_of

SUBWORD_OPTIONS = {
    "transforms": ["filtertoolong", "onmt_tokenize"],
    "src_onmttok_kwargs": "{'mode': 'char'}",
    "tgt_onmttok_kwargs": "{'mode': 'char'}",
}


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of sentences, which are divided into characters."""
    folder = tmp_path_factory.mktemp("sentences") / "model"
    return write_model(folder, 5, vocabularies_of("abé", "xy"), options=SUBWORD_OPTIONS)


@pytest.fixture(scope="module")
def word_answer(inflection_model: Path) -> dict[str, Any]:
    """The page's answer to a word of two letters."""
    query = {"language": "german", "source": " a b ", "tags": "V; PST"}
    answer: dict[str, Any] = page_client(inflection_model).post("/answer", json=query).get_json()
    return answer


def test_a_word_has_the_forms_of_inflect(
    word_answer: dict[str, Any], inflection_model: Path
) -> None:
    inflector = Inflector([inflection_model], n_best=4, beam_size=4, max_length=8)
    expected = inflector.inflect("german", "a b", "V;PST").forms
    hypotheses = word_answer["record"]["hypotheses"]
    assert [hypothesis["text"] for hypothesis in hypotheses] == [form.text for form in expected]
    assert hypotheses[0]["prob"] == pytest.approx(expected[0].prob, abs=1e-6)


def test_an_answer_has_the_tags_of_its_query(word_answer: dict[str, Any]) -> None:
    assert word_answer["tags"] == ["V", "PST"]


def test_a_drawing_has_the_tokens_of_the_source(word_answer: dict[str, Any]) -> None:
    assert word_answer["drawing"]["source"] == ["lang=german", "+V", "+PST", "a", "▁", "b"]


def test_every_hypothesis_ends_once_in_the_lattice(word_answer: dict[str, Any]) -> None:
    """A branch is (token, log-probability), and (None, log-probability, hypothesis) at an end."""
    branches = [branch for node in word_answer["drawing"]["nodes"] for branch in node["branches"]]
    ends = [rest[0] for token, _, *rest in branches if token is None and rest]
    assert sorted(ends) == list(range(len(word_answer["record"]["hypotheses"])))


def test_unknown_tags_and_letters_are_named(inflection_model: Path) -> None:
    query = {"language": "german", "source": "aö", "tags": "V;FUT"}
    answer = page_client(inflection_model).post("/answer", json=query).get_json()
    assert answer["record"]["unknown"] == {"tag FUT": 1, "character ö": 1}


@pytest.mark.usefixtures("pyonmttok")
def test_unknown_subwords_of_a_sentence_are_named(sentence_model: Path) -> None:
    answer = page_client(sentence_model).post("/answer", json={"source": "ab e\u0301"}).get_json()
    assert answer["record"]["unknown"] == {"e\u0301": 1}


@pytest.mark.parametrize(
    ("lemma", "count"),
    [
        pytest.param("a", 1, id="mixed scripts in a form"),
        pytest.param("aб", 1, id="mixed scripts in the lemma"),
        pytest.param("a\u0308", 2, id="decomposed letter"),
        pytest.param("б", 0, id="one script"),
    ],
)
def test_letters_of_other_scripts_and_normal_forms_are_named_as_by_inflect(
    tmp_path: Path, lemma: str, count: int
) -> None:
    vocabularies = vocabularies_of(("lang=x", "+V", "a", "ä", "б"), "aб")
    model = write_model(tmp_path / "model", 4, vocabularies, end=1)
    query = {"language": "x", "source": lemma, "tags": "V"}
    warnings = Answering(model, TASK).answer(query)["record"]["warnings"]
    inflector = Inflector([model], n_best=4, beam_size=4, max_length=8)
    expected = inflector.inflect("x", lemma, "V").warnings
    # The page has unknown symbols in a field of their own.
    assert warnings == [text for text in expected if "unknown" not in text]
    assert len(warnings) == count


@pytest.mark.usefixtures("pyonmttok")
def test_a_sentence_goes_through_the_subwords_of_training(sentence_model: Path) -> None:
    answer = page_client(sentence_model).post("/answer", json={"source": "ab ba"}).get_json()
    assert answer["drawing"]["source"] == ["a", "b", "b", "a"]
    translator = Translator.from_folders(
        [sentence_model], TASK, transforms=["onmt_tokenize"], attention=True
    )
    (expected,) = translator.answers(["ab ba"])
    assert answer["record"] == answer_record(expected)


def test_the_title_of_the_page_is_a_text(inflection_model: Path) -> None:
    """`page_client` names it `a <title>`."""
    assert "a &lt;title&gt;" in page_client(inflection_model).get("/").text
