"""Languages: their codes, and those that names of files and lines of tokens say."""

import json
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.strings.languages import codes, known_as, language_of_file, language_of_line
from tests.commands import ROOT


@pytest.mark.parametrize("model", ["inflection-86", "inflection-102"])
def test_every_language_of_the_shipped_models_has_a_code(model: str) -> None:
    content = json.loads((ROOT / "data/models" / model / "vocab.json").read_text(encoding="utf-8"))
    names = {
        token.removeprefix("lang=") for token in content["source"] if token.startswith("lang=")
    }
    assert names
    assert names <= codes().keys()


def test_no_code_means_two_languages() -> None:
    all_codes = [code for of_language in codes().values() for code in of_language]
    assert len(all_codes) == len(set(all_codes))


def test_codes_have_three_letters() -> None:
    assert {len(code) for of_language in codes().values() for code in of_language} == {3}


@pytest.mark.parametrize(
    ("name", "languages", "language"),
    [
        pytest.param("deu", ["german"], "german", id="code of a name"),
        pytest.param("german", ["deu"], "deu", id="name of a code"),
        pytest.param("ekk", ["estonian"], "estonian", id="code of one language of a group"),
        pytest.param("est", ["ekk"], "ekk", id="code of the group"),
        pytest.param("ger", ["german"], "german", id="code of libraries"),
        pytest.param("rum", ["ron"], "ron", id="one code for another"),
        pytest.param("deu", ["deu", "german"], "deu", id="both are known"),
        pytest.param("deu", ["dutch"], "deu", id="another language"),
        pytest.param("klingon", ["german"], "klingon", id="no code"),
    ],
)
def test_a_language_is_known_by_name_or_code(
    name: str, languages: list[str], language: str
) -> None:
    assert known_as(name, languages) == language


@pytest.mark.parametrize(
    ("name", "language"),  # as files of the shared tasks and of UniMorph are named
    [
        ("heb.trn", "heb"),
        ("heb_unvoc.trn", "heb_unvoc"),
        ("vie_hanoi_train.tsv", "vie_hanoi"),
        ("vie_hanoi_test.covered.tsv", "vie_hanoi"),
        ("classical-syriac-train-low", "classical-syriac"),
        ("deu.covered.tst", "deu"),
        ("english-task1-dev", "english"),
        ("english-covered-test", "english"),
        ("train.tsv", ""),
        ("ket_small.train", "ket"),
        ("ady.train2.tsv", "ady"),
        ("low-german-train-medium", "low-german"),
        ("mine.csv", "mine"),
    ],
)
def test_the_name_of_a_file_says_its_language(name: str, language: str) -> None:
    assert language_of_file(name) == language


def test_a_line_says_its_language() -> None:
    assert language_of_line(Path("file"), 3, "lang=old-norse +V a") == "old-norse"


@pytest.mark.parametrize("line", ["+V a", "lang=", ""])
def test_a_line_without_a_language_is_refused(line: str) -> None:
    message = r"file:3: expected a language first \(lang=\.\.\.\), .*; put one before each line"
    with pytest.raises(UserError, match=message):
        language_of_line(Path("file"), 3, line)
