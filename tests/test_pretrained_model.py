"""The pretrained model of this checkout, in data/models: its files, and what its documents say."""

from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.files.checksums import differences
from onmt_entmax.files.released import PRETRAINED, pretrained
from tests.commands import ROOT


@pytest.fixture(scope="module")
def folder() -> Path:
    return pretrained()


@pytest.fixture(scope="module")
def inflector(folder: Path) -> Inflector:
    return Inflector(folder, n_best=0)


def test_the_pretrained_model_is_in_data(folder: Path) -> None:
    assert folder == ROOT / "data" / "models" / PRETRAINED


def test_the_files_of_the_pretrained_model_have_its_checksums(folder: Path) -> None:
    assert differences(folder) == []


def test_the_pretrained_model_is_small_enough_for_a_repository(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < 22_000_000


@pytest.mark.parametrize(
    ("language", "lemma", "tags", "forms"),
    [
        ("spanish", "preferir", "V;SBJV;PST;3;SG", ["prefiriese"]),
        ("turkish", "kitap", "N;ACC;SG", ["kitabı", "kitapı"]),
    ],
)
def test_the_pretrained_model_inflects_the_words_of_the_readme(
    inflector: Inflector, language: str, lemma: str, tags: str, forms: list[str]
) -> None:
    inflection = inflector.inflect(language, lemma, tags)
    assert [form.text for form in inflection.forms] == forms


def test_a_word_of_the_readme_has_only_one_possible_form(inflector: Inflector) -> None:
    assert inflector.inflect("spanish", "preferir", "V;SBJV;PST;3;SG").level == "only"


def test_the_card_of_the_pretrained_model_names_its_languages(
    inflector: Inflector, folder: Path
) -> None:
    assert len(inflector.languages) == 86
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "Languages: " + ", ".join(inflector.languages) + "." in card
