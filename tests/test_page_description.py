"""The page of `serve` before anyone asks: a query that it shows, if the folder knows one."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.checkpoint import CELLS
from onmt_entmax.files.checksums import write_list
from onmt_entmax.search import SearchTask
from onmt_entmax.strings.cells import cells_text
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import write_phones


def answering_of(folder: Path, languages: str, letters: str, tags: str, cells: Any) -> Answering:
    """Return the answers of a random model of inflection.

    Args:
        folder: of the model.
        languages: their names, with spaces between them.
        letters: of both vocabularies.
        tags: with spaces between them.
        cells: by language, how often training had each cell; the folder records them.
    """
    marks = [f"lang={name}" for name in languages.split()] + [f"+{tag}" for tag in tags.split()]
    model = write_model(folder, 3, words((*marks, *letters), letters))
    (model / CELLS).write_text(cells_text(cells), encoding="utf-8")
    write_list(model)
    return Answering(model, SearchTask())


def test_the_example_is_a_word_whose_cell_the_folder_records(tmp_path: Path) -> None:
    """In the order of the cell, under the name that the model has for the language."""
    cells = {"tur": {("N", "DAT"): 9, ("N", "SG", "ACC"): 2}, "aaa": {("V",): 9}}
    answering = answering_of(tmp_path / "m", "aaa tur", "kitap", "N SG ACC DAT V", cells)
    assert answering.description()["example"] == {
        "language": "tur", "source": "kitap", "tags": "N;SG;ACC",
    }  # fmt: skip


def test_else_it_is_the_most_frequent_cell_of_the_part_of_speech(tmp_path: Path) -> None:
    cells = {"turkish": {("V", "X"): 9, ("N", "DAT"): 5, ("N", "GEN"): 2}}
    answering = answering_of(tmp_path / "m", "turkish", "kitap", "N V X DAT GEN", cells)
    assert answering.description()["example"]["tags"] == "N;DAT"


@pytest.mark.parametrize(("language", "letters"), [("turkish", "kita"), ("aaa", "kitap")])
def test_an_example_without_a_word_has_language_and_tags(
    tmp_path: Path, language: str, letters: str
) -> None:
    """No word is known of the language, or one with letters that the model lacks."""
    cells = {language: {("N", "ACC", "SG"): 9, ("V",): 2}}
    answering = answering_of(tmp_path / "m", language, letters, "N ACC SG V", cells)
    assert answering.description()["example"] == {
        "language": language, "source": "", "tags": "N;ACC;SG",
    }  # fmt: skip


def test_a_model_without_languages_has_no_example(tmp_path: Path) -> None:
    description = Answering(write_phones(tmp_path / "model", 3), SearchTask()).description()
    assert description["example"] == {}
    assert description["source"] == {
        "label": "Word",
        "placeholder": "type a word",
        "kind": "characters",
    }
