"""`onmt-entmax paradigm --format keyman`: lists of words with weights."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from onmt_entmax.paradigm.word_formats import KeymanList
from tests.cli.automata import Key
from tests.cli.paradigms import Writer, form_weights


def test_a_keyman_list_has_all_forms_with_their_weights(
    lemmas_writer: Writer, cell_probs: Mapping[Key, float]
) -> None:
    """A weight is a whole number of thousandths, and at least 1."""
    weights = form_weights(cell_probs)
    *lines, _comment = lemmas_writer.write("keyman").lines()
    rows = [line.split("\t") for line in lines]
    assert {word: int(weight) for word, weight, _lemma in rows} == {
        form: max(round(1000 * weight), 1) for form, weight in weights.items() if form
    }


def test_a_keyman_list_ends_with_what_is_printed(lemmas_writer: Writer) -> None:
    written = lemmas_writer.write("keyman")
    assert written.lines()[-1] == f"# {written.printed.strip()}"


def test_forms_that_a_keyman_list_leaves_out_are_named(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here `a` stands for a form that the format cannot hold."""
    monkeypatch.setattr(KeymanList, "is_word", lambda _, form: form != "a")
    errors = Writer(paradigm_model, cells_file, tmp_path, "ab").write("keyman").errors
    assert "warning: left out, as no line of the list can hold them: 'a'" in errors


def test_a_keyman_list_of_all_forms_has_no_warning(lemmas_writer: Writer) -> None:
    assert "left out" not in lemmas_writer.write("keyman").errors
