"""`target_symbols` of ensembles: all models exclude the same symbols from their mean.

A symbol is excluded if no model of the ensemble has it among the recorded ones of the language.
"""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from tests.letter_models import LETTERS, write_letters
from tests.string_models import UNKNOWN

LONGEST = 3  # tokens of an output


class TestEnsembles:
    """Their mean is over the same texts."""

    @pytest.fixture(
        params=["left_to_right", "right_to_left"], ids=["token-level", "sequence-level"]
    )
    def transducer(self, request: pytest.FixtureRequest, tmp_path: Path) -> Transducer:
        """Two models with different symbols recorded; the second may write in another order.

        Of the language x, one records a and the other b; of y, only one records symbols.
        """
        folders = [
            write_letters(tmp_path / "model", 0, {"lang=x": "a", "lang=y": "c"}),
            write_letters(tmp_path / "other", 1, {"lang=x": "b"}, target_order=request.param),
        ]
        return Transducer(
            folders, n_best=0, beam_size=200, max_length=LONGEST, budget=0,
            target_symbols="language",
        )  # fmt: skip

    def texts(self, transducer: Transducer, language: str) -> list[str]:
        """Return the texts predicted for the source a."""
        return [output.text for output in transducer.predict("a", "V", language).outputs]

    def test_have_the_symbols_of_any_of_their_models(self, transducer: Transducer) -> None:
        assert {*"".join(self.texts(transducer, "x"))} - {UNKNOWN} == {"a", "b"}

    def test_have_texts_with_symbols_of_both_models(self, transducer: Transducer) -> None:
        assert any({"a", "b"} <= {*text} for text in self.texts(transducer, "x"))

    def test_have_all_symbols_where_a_model_records_none(self, transducer: Transducer) -> None:
        with pytest.warns(UserWarning, match="does not record the target symbols of y"):
            texts = self.texts(transducer, "y")
        assert {*"".join(texts)} - {UNKNOWN} == {*LETTERS}


@pytest.mark.parametrize("language", ["x", "y"])
class TestModelsThatRecordNoLanguageInCommon:
    """One model records the symbols of the language x alone, and the other those of y."""

    @pytest.fixture
    def transducer(self, tmp_path: Path) -> Transducer:
        folders = [
            write_letters(tmp_path / "model", 0, {"lang=x": "a"}),
            write_letters(tmp_path / "other", 1, {"lang=y": "c"}),
        ]
        return Transducer(
            folders, n_best=0, beam_size=200, max_length=LONGEST, budget=0,
            target_symbols="language",
        )  # fmt: skip

    @pytest.mark.filterwarnings("ignore:.*does not record the target symbols:UserWarning")
    def test_may_write_any_symbol(self, transducer: Transducer, language: str) -> None:
        outputs = transducer.predict("a", "V", language).outputs
        assert {*"".join(output.text for output in outputs)} - {UNKNOWN} == {*LETTERS}

    def test_give_a_warning_that_names_the_language(
        self, transducer: Transducer, language: str
    ) -> None:
        with pytest.warns(UserWarning, match=f"does not record the target symbols of {language}"):
            transducer.predict("a", "V", language)
