"""`target_symbols: language` with an ensemble, whose models all exclude the same symbols.

An output may have the symbols that any of the models records for the language of the query.
"""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from tests.letter_models import LETTERS, write_letters
from tests.string_models import UNKNOWN


def transducer_of(folders: list[Path]) -> Transducer:
    """Return a transducer of several models that lists all outputs of up to three symbols."""
    return Transducer(
        folders, n_best=0, beam_size=200, max_length=3, budget=0, target_symbols="language"
    )


def predicted_texts(transducer: Transducer, language: str) -> list[str]:
    """Return the texts of all outputs for the source a."""
    return [output.text for output in transducer.predict("a", "V", language).outputs]


def symbols_of(texts: list[str]) -> set[str]:
    """Return the symbols of texts, apart from the unknown one, which is never excluded."""
    return {*"".join(texts)} - {UNKNOWN}


class TestTwoModels:
    """For the language x, one model records a and the other b; for y, only one records any."""

    @pytest.fixture(
        params=["left_to_right", "right_to_left"], ids=["token-level", "sequence-level"]
    )
    def transducer(self, request: pytest.FixtureRequest, tmp_path: Path) -> Transducer:
        """If the second model writes from right to left, whole outputs are averaged."""
        return transducer_of(
            [
                write_letters(tmp_path / "model", 0, {"lang=x": "a", "lang=y": "c"}),
                write_letters(tmp_path / "other", 1, {"lang=x": "b"}, target_order=request.param),
            ]
        )

    def test_write_the_symbols_that_either_records(self, transducer: Transducer) -> None:
        assert symbols_of(predicted_texts(transducer, "x")) == {"a", "b"}

    def test_write_texts_with_symbols_of_both(self, transducer: Transducer) -> None:
        assert any({"a", "b"} <= {*text} for text in predicted_texts(transducer, "x"))

    def test_write_any_symbol_if_one_of_them_records_none(self, transducer: Transducer) -> None:
        with pytest.warns(UserWarning, match="does not record the target symbols of y"):
            texts = predicted_texts(transducer, "y")
        assert symbols_of(texts) == {*LETTERS}


@pytest.mark.parametrize("language", ["x", "y"])
class TestModelsThatRecordNoLanguageInCommon:
    """One model records symbols for the language x alone, and the other for y alone."""

    @pytest.fixture
    def transducer(self, tmp_path: Path) -> Transducer:
        return transducer_of(
            [
                write_letters(tmp_path / "model", 0, {"lang=x": "a"}),
                write_letters(tmp_path / "other", 1, {"lang=y": "c"}),
            ]
        )

    @pytest.mark.filterwarnings("ignore:.*does not record the target symbols:UserWarning")
    def test_write_any_symbol(self, transducer: Transducer, language: str) -> None:
        assert symbols_of(predicted_texts(transducer, language)) == {*LETTERS}

    def test_give_a_warning_that_names_the_language(
        self, transducer: Transducer, language: str
    ) -> None:
        with pytest.warns(UserWarning, match=f"does not record the target symbols of {language}"):
            transducer.predict("a", "V", language)
