"""Answers of the page of `serve` by one model of each task of strings."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.errors import UserError
from onmt_entmax.transducer import Prediction
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.page_answers import TASK, predicted_outputs, recorded_outputs, transducer_of
from tests.string_models import PHONES, task_options, write_phones


class TestPronunciation:
    """A pronunciation is symbols between spaces."""

    @pytest.fixture
    def expected(self, tmp_path: Path) -> Prediction:
        prediction = transducer_of(write_phones(tmp_path / "model", 3)).predict("abc")
        assert len(prediction.outputs) > 1
        assert any(" " in output.text for output in prediction.outputs)
        return prediction

    @pytest.fixture
    def answer(self, expected: Prediction, tmp_path: Path) -> dict[str, Any]:
        """The answer to a source with spaces around it."""
        return Answering(tmp_path / "model", TASK).answer({"source": " abc "})

    def test_is_the_prediction(self, answer: dict[str, Any], expected: Prediction) -> None:
        assert recorded_outputs(answer["record"]) == predicted_outputs(expected.outputs)

    def test_says_that_its_texts_are_as_people_write_them(self, answer: dict[str, Any]) -> None:
        assert answer["record"]["written"] is True

    def test_is_drawn_with_its_source(self, answer: dict[str, Any]) -> None:
        assert answer["drawing"]["source"] == ["a", "b", "c"]

    def test_has_no_tags(self, answer: dict[str, Any]) -> None:
        assert answer["tags"] == ()

    @pytest.mark.usefixtures("expected")
    def test_is_asked_for_with_a_word(self, tmp_path: Path) -> None:
        assert Answering(tmp_path / "model", TASK).description()["source"] == {
            "label": "Word",
            "placeholder": "type a word",
            "kind": "characters",
        }


class TestSymbolsOfASource:
    """Their separator is `-`."""

    @pytest.fixture
    def answering(self, tmp_path: Path) -> Answering:
        options = task_options(separators={"source": "-", "target": " "})
        vocabularies = vocabularies_of(("ts", "a"), PHONES)
        folder = write_model(tmp_path / "model", 3, vocabularies, options=options)
        return Answering(folder, TASK)

    def test_are_described(self, answering: Answering) -> None:
        assert answering.description()["source"] == {
            "label": "Symbols",
            "placeholder": "symbols between '-', such as ts-a",
            "kind": "symbols",
        }

    def test_are_read(self, answering: Answering) -> None:
        assert answering.answer({"source": "ts-a"})["drawing"]["source"] == ["ts", "a"]

    def test_are_not_empty(self, answering: Answering) -> None:
        with pytest.raises(UserError, match="empty symbol: '-' at an end"):
            answering.answer({"source": "ts-"})


class TestTagsWithoutLanguages:
    @pytest.fixture
    def answering(self, tmp_path: Path) -> Answering:
        options = task_options(("source", "target", "tags"), {"tags": "|"})
        vocabularies = vocabularies_of(("+V", "+PST", *"ab"), "ab")
        return Answering(write_model(tmp_path / "model", 3, vocabularies, options=options), TASK)

    def test_are_read(self, answering: Answering) -> None:
        answer = answering.answer({"source": "ab", "tags": "V|PST"})
        assert answer["drawing"]["source"] == ["+V", "+PST", "a", "b"]
        assert answer["tags"] == ("V", "PST")

    def test_are_not_needed(self, answering: Answering) -> None:
        assert answering.answer({"source": "ab"})["drawing"]["source"] == ["a", "b"]

    @pytest.mark.parametrize("name", ["lemma", "sentence"])
    def test_may_be_missing_beside_a_source_with_its_name_of_release_1_0(
        self, answering: Answering, name: str
    ) -> None:
        assert answering.answer({name: "ab"})["drawing"]["source"] == ["a", "b"]

    def test_are_described(self, answering: Answering) -> None:
        description = answering.description()
        assert (description["languages"], description["tags"]) == (None, ["PST", "V"])
        assert (description["tag_separator"], description["needs_tags"]) == ("|", False)


class TestLanguagesWithoutTags:
    @pytest.fixture
    def answering(self, tmp_path: Path) -> Answering:
        vocabularies = vocabularies_of(("lang=tur", "lang=x", *"kitap"), PHONES)
        options = task_options(("language", "source", "target"), {"target": " "})
        return Answering(write_model(tmp_path / "model", 3, vocabularies, options=options), TASK)

    def test_are_described(self, answering: Answering) -> None:
        description = answering.description()
        assert (description["languages"], description["tags"]) == (["tur", "x"], None)

    def test_have_an_example(self, answering: Answering) -> None:
        example = answering.description()["example"]
        assert example == {"language": "tur", "source": "kitap"}

    def test_are_known_by_name_and_code(self, answering: Answering) -> None:
        answer = answering.answer({"language": "turkish", "source": "ta"})
        assert answer["drawing"]["source"] == ["lang=tur", "t", "a"]

    def test_that_the_model_lacks_are_named(self, answering: Answering) -> None:
        with pytest.raises(UserError, match="no language 'y'"):
            answering.answer({"language": "y", "source": "ta"})


def test_copied_symbols_are_named(tmp_path: Path) -> None:
    vocabularies = vocabularies_of(("a", "<copy1>"), ("a", "<copy1>"))
    options = task_options(copy_frequency=2)
    answering = Answering(write_model(tmp_path / "model", 3, vocabularies, options=options), TASK)
    assert answering.answer({"source": "aö"})["record"]["copied"] == {"character ö": 1}


@pytest.mark.parametrize(
    ("separators", "longest"), [({}, 80), ({"source": "-"}, 500)], ids=["characters", "symbols"]
)
def test_long_sources_are_refused(tmp_path: Path, separators: dict[str, str], longest: int) -> None:
    """The limit is larger for symbols, since each may have several characters."""
    options = task_options(separators=separators)
    answering = Answering(
        write_model(tmp_path / "model", 3, vocabularies_of("a", "a"), options=options), TASK
    )
    assert answering.description()["longest"]["source"] == longest
    with pytest.raises(UserError, match=f"^source: longer than {longest} characters$"):
        answering.answer({"source": "a" * (longest + 1)})
