"""The option `target_symbols` for models that record the symbols of different languages."""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from tests.letter_models import LETTERS, write_letters
from tests.string_models import UNKNOWN

LONGEST = 3  # tokens of an output
ENOUGH = 200  # prefixes of a beam: all of them, so that every output is found


@pytest.mark.parametrize("language", ["x", "y"])
def test_models_that_record_no_language_in_common_may_write_any_symbol(
    tmp_path: Path, language: str
) -> None:
    """A warning names the language of the query."""
    folders = [
        write_letters(tmp_path / "model", 0, {"lang=x": "a"}),
        write_letters(tmp_path / "other", 1, {"lang=y": "c"}),
    ]
    transducer = Transducer(
        folders,
        n_best=0,  # all outputs that are found
        beam_size=ENOUGH,
        max_length=LONGEST,
        budget=0,  # no exact search
        target_symbols="language",
    )
    with pytest.warns(UserWarning, match=f"does not record the target symbols of {language}"):
        outputs = transducer.predict("a", "V", language).outputs
    assert {*"".join(output.text for output in outputs)} - {UNKNOWN} == {*LETTERS}
