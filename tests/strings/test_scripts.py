"""Words that mix scripts, of real data, and words that may."""

import pytest

from onmt_entmax.strings.scripts import mixture, mixtures


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ура\u0301нкa", "Cyrillic with Latin a (U+0061)"),
        ("къуанчIэ", "Cyrillic with Latin I (U+0049)"),
        ("atoмской", "Cyrillic with Latin a (U+0061), Latin t (U+0074), Latin o (U+006F)"),
        ("იმღერa", "Georgian with Latin a (U+0061)"),
        ("ов αγ", ""),  # two words
        ("αб", "Greek with Cyrillic б (U+0431)"),
    ],
)
def test_a_word_of_several_scripts(form, text):
    assert mixture(form) == (text and f"{form!r} mixes scripts: {text}")


@pytest.mark.parametrize(
    "word",
    [
        "", "ab", "Zoë", "м’яч", "ура\u0301нак", "Tシャツを食べる", "BANすれ", "C형", "ㄅ丙",
        "3D-принтер", "PCR-тест", "কাজ", "مُعَلِّم", "a1", "ⰿⰾⱑⰽⱁ", "ⵣⵓⵍ", "𐎀b", "sʼa", "ab\u0327",
        "١٢٣ واحد",
    ],
)  # fmt: skip
def test_words_of_one_way_of_writing(word):
    assert mixture(word) == mixture(word, word) == ""


@pytest.mark.parametrize(
    ("form", "lemma", "text"),
    [
        ("otmeih", "отмен", "'otmeih' is in Latin, its lemma Cyrillic"),
        ("budu шљемали", "шљемати", "'budu шљемали' is in Cyrillic and Latin, its lemma Cyrillic"),
        ("PCR-теста", "PCR-тест", ""),
        ("тест", "PCR-тест", ""),
        ("食べる", "タベル", ""),
        ("12", "отмен", ""),
    ],
)
def test_a_form_is_in_the_script_of_its_lemma(form, lemma, text):
    assert mixture(form, lemma) == text


def test_most_forms_decide_what_is_right():
    """In a transliteration, other scripts than the lemma's are right, but not mixed words."""
    pairs = [("аб", "ab"), ("вг", "vг"), ("д", "d"), ("еж", "ez"), ("ж", "z")]
    assert list(mixtures(pairs)) == [1]
    assert list(mixtures([*pairs, *[("ж", "ж")] * 3])) == [0, 1, 2, 3, 4]
    assert list(mixtures([("aб", "ab"), ("ab", "ab")])) == [0]
