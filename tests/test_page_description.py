"""The example query on the page of `serve`: a word and its tags, as far as the model has them.

For Turkish, the page has an example of its own: the word kitap with the tags N, ACC and SG.
"""

from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.checkpoint import CELLS
from onmt_entmax.files.checksums import write_list
from onmt_entmax.search import SearchTask
from onmt_entmax.strings.cells import Cells, cells_text
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import write_phones


def answering_of(
    folder: Path, *, languages: str, letters: str, tags: str, cells: Cells
) -> Answering:
    """Return the answers of a random model of inflection.

    Args:
        folder: folder to write.
        languages: their names, with spaces between them.
        letters: letters of both vocabularies.
        tags: tags, with spaces between them.
        cells: recorded by the folder.
    """
    marks = [f"lang={name}" for name in languages.split()] + [f"+{tag}" for tag in tags.split()]
    model = write_model(folder, 3, vocabularies_of((*marks, *letters), letters))
    (model / CELLS).write_text(cells_text(cells), encoding="utf-8")
    write_list(model)
    return Answering(model, SearchTask())


def test_the_example_is_the_word_of_a_language_with_the_cell_of_its_tags(tmp_path: Path) -> None:
    """Another cell is more frequent, and the tags of this one have another order.

    The model names the language by its code.
    """
    answering = answering_of(
        tmp_path / "model",
        languages="aaa tur",
        letters="kitap",
        tags="N SG ACC DAT V",
        cells={"tur": {("N", "DAT"): 9, ("N", "SG", "ACC"): 2}, "aaa": {("V",): 9}},
    )
    assert answering.description()["example"] == {
        "language": "tur",
        "source": "kitap",
        "tags": "N;SG;ACC",
    }


def test_without_that_cell_the_example_has_the_most_frequent_one_of_nouns(
    tmp_path: Path,
) -> None:
    answering = answering_of(
        tmp_path / "model",
        languages="turkish",
        letters="kitap",
        tags="N V X DAT GEN",
        cells={"turkish": {("V", "X"): 9, ("N", "DAT"): 5, ("N", "GEN"): 2}},
    )
    assert answering.description()["example"]["tags"] == "N;DAT"


@pytest.mark.parametrize(
    ("language", "letters"),
    [
        pytest.param("turkish", "kita", id="the model lacks a letter"),
        pytest.param("aaa", "kitap", id="the page has no word of the language"),
    ],
)
def test_an_example_without_a_word_has_a_language_and_its_most_frequent_cell(
    tmp_path: Path, language: str, letters: str
) -> None:
    answering = answering_of(
        tmp_path / "model",
        languages=language,
        letters=letters,
        tags="N ACC SG V",
        cells={language: {("N", "ACC", "SG"): 9, ("V",): 2}},
    )
    assert answering.description()["example"] == {
        "language": language,
        "source": "",
        "tags": "N;ACC;SG",
    }


def test_a_model_without_languages_has_no_example(tmp_path: Path) -> None:
    description = Answering(write_phones(tmp_path / "model", 3), SearchTask()).description()
    assert description["example"] == {}
    assert description["source"] == {
        "label": "Word",
        "placeholder": "type a word",
        "kind": "characters",
    }
