"""Warnings of `Inflector` about tags, letters and scripts that training did not have."""

from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from tests.inflection_models import VOCABULARIES, write_model
from tests.models import vocabularies_of

NORMAL = "the lemma is not in Unicode's normal form {}, in which training has {}: normalise it"
COMPOSED, DECOMPOSED = NORMAL.format("NFC", "ä"), NORMAL.format("NFD", "U+0308, o")


@pytest.fixture(scope="module")
def inflector(tmp_path_factory: pytest.TempPathFactory) -> Inflector:
    """A random model of the standard vocabularies of tests."""
    return Inflector([write_model(tmp_path_factory.mktemp("inflection") / "model", 22)])


def test_a_query_like_those_of_training_has_no_warning(inflector: Inflector) -> None:
    assert inflector.inflect("german", "a b", "V;PST").warnings == ()


@pytest.mark.parametrize(
    ("language", "tags", "warnings"),
    [
        pytest.param(
            "german", "V;SBVJ", ["unknown tag SBVJ (did you mean SBJV?)"], id="letters exchanged"
        ),
        pytest.param(
            "german", "V;sbjv", ["unknown tag sbjv (did you mean SBJV?)"], id="small letters"
        ),
        pytest.param("german", "V;SBJV,", ["unknown tag SBJV, (did you mean SBJV?)"], id="a comma"),
        pytest.param(
            "german",
            "V;SUBJ",
            ["not seen in training for german: '+SUBJ' (did you mean SBJV?)"],
            id="a tag that only English has, in German",
        ),
        pytest.param(
            "english",
            "V;SBJV",
            ["not seen in training for english: '+SBJV' (did you mean SUBJ?)"],
            id="a tag that only German has, in English",
        ),
        pytest.param("english", "V;SUBJ", [], id="a tag that only English has, in English"),
    ],
)
def test_a_warning_about_a_tag_names_a_similar_one(
    tmp_path: Path, language: str, tags: str, warnings: list[str]
) -> None:
    """It is a tag that training had in the language."""
    tokens = dict.fromkeys((*VOCABULARIES.source.tokens, "+V", "+PST", "+SBJV", "+SUBJ"))
    seen = {
        "lang=german": frozenset({"+V", "+PST", "+SBJV", "a"}),
        "lang=english": frozenset({"+V", "+PST", "+SUBJ", "a"}),
    }
    source = Vocabulary(tuple(tokens), seen)
    folder = write_model(tmp_path / "tags", 3, Vocabularies(source, VOCABULARIES.target))
    assert list(Inflector([folder]).inflect(language, "a", tags).warnings) == warnings


@pytest.mark.parametrize(
    ("lemma", "warnings"),
    [
        pytest.param("a", (), id="seen"),
        pytest.param("ä", (), id="seen, composed"),
        pytest.param("a\u0308", (COMPOSED,), id="decomposed"),
        pytest.param("x\u0308", (), id="seen accent on a letter without a composed form"),
        pytest.param("ö", ("unknown character ö", DECOMPOSED), id="composed"),
        pytest.param("а", ("unknown character а",), id="Cyrillic"),
        pytest.param(
            "bа",
            ("unknown character а", "'bа' mixes scripts: Latin with Cyrillic а (U+0430)"),
            id="Latin and Cyrillic",
        ),
    ],
)
def test_letters_that_training_did_not_have_give_warnings(
    tmp_path: Path, lemma: str, warnings: tuple[str, ...]
) -> None:
    source = ("lang=german", "+V", "a", "b", "x", "o", "ä", "\u0308")
    folder = write_model(tmp_path / "model", 3, vocabularies_of(source, "ab"), end=3)
    answer = Inflector([folder]).inflect("german", lemma, "V")
    # The model is random, so its form may be in another script, of which another warning tells.
    about_lemma = tuple(text for text in answer.warnings if "its lemma" not in text)
    assert about_lemma == warnings


def test_a_warning_counts_the_forms_in_other_scripts_than_the_lemma(tmp_path: Path) -> None:
    """For a lemma in Latin, these are forms in Cyrillic, and forms that mix both."""
    vocabularies = vocabularies_of(("lang=x", "+V", "a", "б"), "aб")
    folder = write_model(tmp_path / "model", 4, vocabularies, end=1)
    answer = Inflector([folder], n_best=10, beam_size=10).inflect("x", "aa", "V")
    with_cyrillic = [form.text for form in answer.forms if "б" in form.text]
    mixed = [text for text in with_cyrillic if "a" in text]
    assert len(with_cyrillic) > len(mixed) > 1
    (warning,) = answer.warnings
    assert warning.startswith(repr(with_cyrillic[0]))
    assert warning.endswith(f" (and {len(with_cyrillic) - 1} other forms)")
