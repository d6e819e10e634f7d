"""Words that mix scripts, of real data, and words that may."""

import pytest

from onmt_entmax.strings.scripts import script_mixture, script_mixtures

TRANSLITERATED = [("аб", "ab"), ("вг", "vг"), ("д", "d"), ("еж", "ez"), ("ж", "z")]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ура\u0301нкa", "Cyrillic with Latin a (U+0061)"),
        ("къуанчIэ", "Cyrillic with Latin I (U+0049)"),
        ("atoмской", "Cyrillic with Latin a (U+0061), Latin t (U+0074), Latin o (U+006F)"),
        ("იმღერa", "Georgian with Latin a (U+0061)"),
        ("αб", "Greek with Cyrillic б (U+0431)"),
    ],
)
def test_letters_of_another_script_are_named(form: str, text: str) -> None:
    assert script_mixture(form) == f"{form!r} mixes scripts: {text}"


def test_two_words_may_have_a_script_each() -> None:
    assert script_mixture("ов αγ") == ""


@pytest.mark.parametrize(
    "word",
    [
        "", "ab", "Zoë", "м’яч", "ура\u0301нак", "Tシャツを食べる", "BANすれ", "C형", "ㄅ丙",
        "3D-принтер", "PCR-тест", "কাজ", "مُعَلِّم", "a1", "ⰿⰾⱑⰽⱁ", "ⵣⵓⵍ", "𐎀b", "sʼa", "ab\u0327",
        "١٢٣ واحد",
    ],
)  # fmt: skip
def test_scripts_that_are_written_together_are_not_a_mixture(word: str) -> None:
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
        pytest.param("食べる", "タベル", "", id="scripts of one way of writing"),
        pytest.param("12", "отмен", "", id="no script"),
    ],
)
def test_a_form_is_in_the_script_of_its_lemma(form: str, lemma: str, text: str) -> None:
    assert script_mixture(form, lemma) == text


@pytest.mark.parametrize(
    ("pairs", "mixed"),
    [
        pytest.param(TRANSLITERATED, [1], id="a transliteration"),
        pytest.param(
            [*TRANSLITERATED, *[("ж", "ж")] * 3], [0, 1, 2, 3, 4], id="some are transliterated"
        ),
        pytest.param([("aб", "ab"), ("ab", "ab")], [0], id="one script"),
    ],
)
def test_most_forms_decide_which_scripts_are_right(
    pairs: list[tuple[str, str]], mixed: list[int]
) -> None:
    """In a transliteration, other scripts than the lemma's are right, but not mixed words."""
    assert list(script_mixtures(pairs)) == mixed
