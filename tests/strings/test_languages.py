"""Codes of languages."""

import json

import pytest

from onmt_entmax.strings.languages import codes, known_as
from tests.commands import ROOT


@pytest.mark.parametrize("model", ["inflection-86", "inflection-102"])
def test_every_language_of_the_shipped_models_has_a_code(model: str) -> None:
    content = json.loads((ROOT / "data/models" / model / "vocab.json").read_text(encoding="utf-8"))
    names = {t.removeprefix("lang=") for t in content["source"] if t.startswith("lang=")}
    assert names <= codes().keys()


def test_no_code_means_two_languages() -> None:
    listed = [code for some in codes().values() for code in some]
    assert len(listed) == len(set(listed))
    assert all(len(code) == 3 for code in listed)


@pytest.mark.parametrize(
    ("asked", "known", "found"),
    [
        ("deu", ["german"], "german"),
        ("german", ["deu"], "deu"),
        ("ekk", ["estonian"], "estonian"),
        ("est", ["ekk"], "ekk"),
        ("ger", ["german"], "german"),
        ("rum", ["ron"], "ron"),
        ("deu", ["deu", "german"], "deu"),
        ("deu", ["dutch"], "deu"),
        ("klingon", ["german"], "klingon"),
    ],
)
def test_a_language_is_known_by_name_or_code(asked: str, known: list[str], found: str) -> None:
    assert known_as(asked, known) == found
