"""Languages: their ISO 639 codes, and the language of a file's name or of a line of tokens."""

import json
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.strings.languages import (
    codes,
    known_as,
    known_language_of_file,
    language_of_file,
    language_of_line,
)
from onmt_entmax.strings.marks import LANGUAGE, is_language
from tests.commands import ROOT


@pytest.mark.parametrize(
    ("model", "count"),
    [
        pytest.param("inflection-86", 86, id="inflection-86"),
        pytest.param("inflection-102", 102, id="inflection-102"),
    ],
)
def test_every_language_of_the_shipped_models_has_a_code(model: str, count: int) -> None:
    vocabulary = (ROOT / "data/models" / model / "vocab.json").read_text(encoding="utf-8")
    tokens = filter(is_language, json.loads(vocabulary)["source"])
    languages = {token.removeprefix(LANGUAGE) for token in tokens}
    assert len(languages) == count
    assert languages <= codes().keys()


def test_no_code_means_two_languages() -> None:
    all_codes = [code for language_codes in codes().values() for code in language_codes]
    assert all_codes
    assert len(all_codes) == len(set(all_codes))


def test_codes_have_three_letters() -> None:
    assert {len(code) for language_codes in codes().values() for code in language_codes} == {3}


@pytest.mark.parametrize(
    ("name", "languages", "language"),
    [
        pytest.param("deu", ["german"], "german", id="a code for a name"),
        pytest.param("german", ["deu"], "deu", id="a name for a code"),
        pytest.param("ekk", ["estonian"], "estonian", id="a member of a macrolanguage"),
        pytest.param("est", ["ekk"], "ekk", id="a macrolanguage for its member"),
        pytest.param("ger", ["german"], "german", id="a code of ISO 639-2 for a name"),
        pytest.param("rum", ["ron"], "ron", id="a code of ISO 639-2 for one of ISO 639-3"),
        pytest.param("deu", ["deu", "german"], "deu", id="the model has both"),
        pytest.param("deu", ["dutch"], "deu", id="the model has another language"),
        pytest.param("klingon", ["german"], "klingon", id="no code"),
    ],
)
def test_a_model_knows_a_language_by_its_name_or_one_of_its_codes(
    name: str, languages: list[str], language: str
) -> None:
    assert known_as(name, languages) == language


@pytest.mark.parametrize(
    ("name", "language"),
    [  # years are of SIGMORPHON's shared tasks
        pytest.param("english-task1-dev", "english", id="task and set of 2016"),
        pytest.param("english-covered-test", "english", id="covered test set of 2018"),
        pytest.param(
            "classical-syriac-train-low",
            "classical-syriac",
            id="setting of 2018, two words",
        ),
        pytest.param(
            "low-german-train-medium", "low-german", id="a language that begins as a setting"
        ),
        pytest.param("ady.train2.tsv", "ady", id="a numbered part"),
        pytest.param("ady_train_2.tsv", "ady", id="a numbered part, with a divider"),
        pytest.param("ady_dev_10.tsv", "ady", id="a numbered part of the development set"),
        pytest.param("ady_1990.tsv", "ady_1990", id="a number that belongs to the language"),
        pytest.param("vie_hanoi_train.tsv", "vie_hanoi", id="a dialect's training set"),
        pytest.param("vie_hanoi_test.covered.tsv", "vie_hanoi", id="a dialect's covered test set"),
        pytest.param("ket_small.train", "ket", id="a size"),
        pytest.param("deu.covered.tst", "deu", id="covered test set of 2023"),
        pytest.param("heb.trn", "heb", id="training set of 2023"),
        pytest.param("heb_unvoc.trn", "heb_unvoc", id="a variety of 2023"),
        pytest.param("train_heb_unvoc.tsv", "heb_unvoc", id="the set first"),
        pytest.param("dev.deu", "deu", id="the set first, and no format"),
        pytest.param("mine.csv", "mine", id="none of the shared tasks"),
        pytest.param("train.tsv", "", id="no language"),
    ],
)
def test_the_language_of_a_file_is_its_name_without_usual_endings(name: str, language: str) -> None:
    assert language_of_file(name) == language


@pytest.mark.parametrize(
    ("name", "language"),
    [
        pytest.param("deu_train.tsv", "german", id="a code"),
        pytest.param("German-dev", "german", id="a name"),
        pytest.param("north-frisian-dev", "north-frisian", id="a name of two words"),
        pytest.param("deu_latn_broad_test.tsv", "german", id="a code, and how it is written"),
        pytest.param("words_dev.tsv", "", id="another word"),
        pytest.param("words_deu.tsv", "", id="a code behind another word"),
        pytest.param("train.tsv", "", id="no word"),
    ],
)
def test_a_file_whose_name_begins_with_a_language_is_of_a_known_one(
    name: str, language: str
) -> None:
    assert known_language_of_file(name) == language


def test_the_first_token_of_a_line_is_its_language() -> None:
    assert language_of_line(Path("file"), 3, "lang=old-norse +V a") == "old-norse"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("+V a", id="another token first"),
        pytest.param("lang=", id="no name"),
        pytest.param("", id="empty line"),
    ],
)
def test_a_line_without_a_language_is_refused(line: str) -> None:
    message = r"file:3: expected a language first \(lang=\.\.\.\), .*; put one before each line"
    with pytest.raises(UserError, match=message):
        language_of_line(Path("file"), 3, line)
