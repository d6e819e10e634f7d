"""The example query on the page of `serve`: a word and its tags, as far as the model has them.

`page_example.tsv` lists words of some languages: for Turkish, kitap with the tags N, ACC and SG.
"""

from collections.abc import Mapping
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


def example_of(
    folder: Path, *, languages: str, letters: str, tags: str, cells: Cells
) -> Mapping[str, str]:
    """Return the example of a model of inflection.

    Args:
        folder: folder of the model, to be written.
        languages: names of its languages, with spaces between them.
        letters: letters of both vocabularies.
        tags: its tags, with spaces between them.
        cells: how often training had each combination of tags, by language.
    """
    marks = [f"lang={name}" for name in languages.split()] + [f"+{tag}" for tag in tags.split()]
    model = write_model(folder, 3, vocabularies_of((*marks, *letters), letters))
    (model / CELLS).write_text(cells_text(cells), encoding="utf-8")
    write_list(model)
    return Answering(model, SearchTask()).description()["example"]


def test_an_example_is_a_listed_word_with_its_tags(tmp_path: Path) -> None:
    """The model has the language by its code, and the tags in another order.

    Another combination of tags is more frequent.
    """
    example = example_of(
        tmp_path / "model",
        languages="aaa tur",
        letters="kitap",
        tags="N SG ACC DAT V",
        cells={"tur": {("N", "DAT"): 9, ("N", "SG", "ACC"): 2}, "aaa": {("V",): 9}},
    )
    assert example == {"language": "tur", "source": "kitap", "tags": "N;SG;ACC"}


def test_without_these_tags_the_example_has_the_most_frequent_ones_of_nouns(
    tmp_path: Path,
) -> None:
    """The combination V;X is more frequent, but kitap is a noun."""
    example = example_of(
        tmp_path / "model",
        languages="turkish",
        letters="kitap",
        tags="N V X DAT GEN",
        cells={"turkish": {("V", "X"): 9, ("N", "DAT"): 5, ("N", "GEN"): 2}},
    )
    assert example["tags"] == "N;DAT"


@pytest.mark.parametrize(
    ("language", "letters"),
    [
        pytest.param("turkish", "kita", id="the model lacks a letter"),
        pytest.param("aaa", "kitap", id="no word of the language is listed"),
    ],
)
def test_an_example_without_a_word_has_the_most_frequent_tags_of_a_language(
    tmp_path: Path, language: str, letters: str
) -> None:
    example = example_of(
        tmp_path / "model",
        languages=language,
        letters=letters,
        tags="N ACC SG V",
        cells={language: {("N", "ACC", "SG"): 9, ("V",): 2}},
    )
    assert example == {"language": language, "source": "", "tags": "N;ACC;SG"}


def test_a_model_without_languages_has_no_example(tmp_path: Path) -> None:
    description = Answering(write_phones(tmp_path / "model", 3), SearchTask()).description()
    assert description["example"] == {}
