"""Words that mix scripts by mistake, and words that rightly have letters of several.

Most of them come from real data, with its typing errors.
"""

import pytest

from onmt_entmax.strings.scripts import script_mixture, script_mixtures


@pytest.mark.parametrize(
    ("form", "text"),
    [
        pytest.param("ура\u0301нкa", "Cyrillic with Latin a (U+0061)", id="letter with a twin"),
        pytest.param(
            "къуанчIэ", "Cyrillic with Latin I (U+0049)", id="letter that looks like a palochka"
        ),
        pytest.param(
            "atoмской",
            "Cyrillic with Latin a (U+0061), Latin t (U+0074), Latin o (U+006F)",
            id="several letters",
        ),
        pytest.param("იმღერa", "Georgian with Latin a (U+0061)", id="Georgian"),
        pytest.param("αб", "Greek with Cyrillic б (U+0431)", id="neither is Latin"),
    ],
)
def test_letters_of_another_script_are_named(form: str, text: str) -> None:
    assert script_mixture(form) == f"{form!r} mixes scripts: {text}"


def test_two_words_may_have_a_script_each() -> None:
    assert script_mixture("ов αγ") == ""


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("", id="empty"),
        pytest.param("ab", id="Latin"),
        pytest.param("Zoë", id="precomposed letter"),
        pytest.param("ab\u0327", id="combining cedilla, Latin"),
        pytest.param("ура\u0301нак", id="combining accent, Cyrillic"),
        pytest.param("কাজ", id="vowel signs, Bengali"),
        pytest.param("مُعَلِّم", id="vowel signs, Arabic"),
        pytest.param("м’яч", id="apostrophe"),
        pytest.param("sʼa", id="apostrophe that is a letter"),
        pytest.param("a1", id="digit"),
        pytest.param("١٢٣ واحد", id="Arabic digits"),
        pytest.param("Tシャツを食べる", id="Latin, Katakana, Hiragana and Han"),
        pytest.param("BANすれ", id="Latin and Hiragana"),
        pytest.param("C형", id="Latin and Hangul"),
        pytest.param("ㄅ丙", id="Bopomofo and Han"),
        pytest.param("3D-принтер", id="Latin before a hyphen, with a digit"),
        pytest.param("PCR-тест", id="Latin before a hyphen"),
        pytest.param("ⰿⰾⱑⰽⱁ", id="Glagolitic"),
        pytest.param("ⵣⵓⵍ", id="Tifinagh"),
        pytest.param("𐎀b", id="a script that is not checked, and Latin"),
    ],
)
def test_signs_and_scripts_that_are_written_together_are_no_mixture(word: str) -> None:
    assert script_mixture(word) == script_mixture(word, word) == ""


@pytest.mark.parametrize(
    ("form", "lemma", "text"),
    [
        pytest.param(
            "otmeih", "отмен", "'otmeih' is in Latin, its lemma Cyrillic", id="another script"
        ),
        pytest.param(
            "budu шљемали",
            "шљемати",
            "'budu шљемали' is in Cyrillic and Latin, its lemma Cyrillic",
            id="another script in one word",
        ),
        pytest.param("PCR-теста", "PCR-тест", "", id="both scripts of the lemma"),
        pytest.param("тест", "PCR-тест", "", id="one script of the lemma"),
        pytest.param("食べる", "タベル", "", id="scripts that are written together"),
        pytest.param("12", "отмен", "", id="no script"),
    ],
)
def test_a_form_is_in_the_script_of_its_lemma(form: str, lemma: str, text: str) -> None:
    assert script_mixture(form, lemma) == text


# Pairs of a Cyrillic lemma and its Latin form. One form has both scripts: Latin v, Cyrillic г.
WITH_BOTH = ("вг", "v\N{CYRILLIC SMALL LETTER GHE}")
TRANSLITERATED = [("аб", "ab"), WITH_BOTH, ("д", "d"), ("еж", "ez"), ("ж", "z")]
CYRILLIC = [("ж", "ж"), ("ж", "ж"), ("ж", "ж")]


@pytest.mark.parametrize(
    ("pairs", "mixed"),
    [
        pytest.param(TRANSLITERATED, [WITH_BOTH], id="most forms are Latin"),
        pytest.param(
            [*TRANSLITERATED, *CYRILLIC], TRANSLITERATED, id="half of the forms are Latin"
        ),
        pytest.param([("aб", "ab"), ("ab", "ab")], [("aб", "ab")], id="a lemma has both scripts"),
    ],
)
def test_most_forms_decide_which_scripts_are_right(
    pairs: list[tuple[str, str]], mixed: list[tuple[str, str]]
) -> None:
    """If most forms are in another script than their lemmas, only mixed words are errors."""
    assert [pairs[position] for position in script_mixtures(pairs)] == mixed
