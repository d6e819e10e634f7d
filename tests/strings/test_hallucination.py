"""Hallucinated pairs: which units they keep, which letters are drawn, and how many there are."""

import pytest

from onmt_entmax.strings.hallucination import hallucinated, stem_of, stem_share
from onmt_entmax.strings.pairs import Pair

MARKS = ("lang=deu", "+V.PTCP", "+PST")
LETTERS = "abegilnstuvw"


def pair(source: str, target: str) -> Pair:
    return Pair(MARKS, tuple(source), tuple(target))


PARTICIPLE = pair("abwaschen", "abgewaschen")
# Pairs that have every letter, so that each may be drawn for the stem of another pair.
ALPHABET = [pair(LETTERS, LETTERS), pair(LETTERS.upper(), LETTERS.upper())]


def invented_for(known: Pair, copies: int = 50, seed: int = 1) -> list[Pair]:
    """Return the pairs that are invented for one pair, with letters of `ALPHABET`."""
    invented = hallucinated({"deu": [known, *ALPHABET]}, copies, seed)
    # Pairs that are invented for the alphabet are as long as it is.
    own = [new for new in invented if len(new.target) != len(LETTERS)]
    assert len(own) == copies
    return own


# --- stems -----------------------------------------------------------------------------------


def test_a_stem_is_what_source_and_target_have_in_common() -> None:
    assert stem_of(PARTICIPLE) == [(2, 4, 7)]


def test_two_common_units_are_not_a_stem() -> None:
    assert stem_of(pair("ab", "ab")) == []


def test_a_stem_may_have_two_parts() -> None:
    assert stem_of(pair("bergab", "berxgab")) == [(0, 0, 3), (3, 4, 3)]


def test_the_share_of_a_source_that_is_its_stem() -> None:
    assert stem_share([PARTICIPLE]) == pytest.approx(7 / 9)


def test_a_pair_without_a_stem_has_a_share_of_zero() -> None:
    assert stem_share([PARTICIPLE, pair("go", "went")]) == pytest.approx(7 / 18)


# --- what stays ------------------------------------------------------------------------------


def test_invented_pairs_keep_the_marks() -> None:
    assert {new.marks for new in invented_for(PARTICIPLE)} == {MARKS}


def test_invented_pairs_keep_the_units_outside_the_stem() -> None:
    invented = invented_for(PARTICIPLE)
    assert {new.source[:2] for new in invented} == {tuple("ab")}
    assert {new.target[:4] for new in invented} == {tuple("abge")}


def test_invented_pairs_keep_units_that_are_not_letters() -> None:
    invented = invented_for(pair("ab-ab", "ab-abs"))
    assert {new.source[2] for new in invented} == {"-"}


# --- what is drawn ---------------------------------------------------------------------------


def test_the_stem_is_the_same_in_source_and_target() -> None:
    invented = invented_for(PARTICIPLE)
    assert [new.source[2:] for new in invented] == [new.target[4:] for new in invented]


def test_each_letter_of_a_stem_is_drawn() -> None:
    """Fifty draws of twelve letters have more than five different ones."""
    stems = [new.source[2:] for new in invented_for(PARTICIPLE)]
    drawn = [set(letters) for letters in zip(*stems, strict=True)]
    assert len(drawn) == len("waschen")
    assert all(len(letters) > 5 for letters in drawn)


def test_capital_letters_are_drawn_for_capital_ones() -> None:
    invented = invented_for(pair("Haus", "Hauses"))
    capital = {tuple(letter.isupper() for letter in new.source) for new in invented}
    assert capital == {(True, False, False, False)}


def test_units_that_are_not_letters_are_not_drawn() -> None:
    pairs = [pair("ab-ab", "ab-abs"), pair("abelin", "abelin")]
    invented = hallucinated({"deu": pairs}, copies=100, seed=1)
    places = {
        tuple(place for place, unit in enumerate(new.source) if unit == "-") for new in invented
    }
    assert places == {(2,), ()}


@pytest.mark.parametrize(("pairs_with_it", "drawn"), [(1, False), (2, True)])
def test_a_letter_is_drawn_if_one_of_500_pairs_has_it(pairs_with_it: int, drawn: bool) -> None:
    """If fewer have it, the vocabulary may lack the letter, or copy it."""
    pairs = [pair("abel", "abels")] * (1000 - pairs_with_it) + [pair("xyz", "xyzs")] * pairs_with_it
    invented = hallucinated({"deu": pairs}, copies=1, seed=1)
    assert len(invented) == 1000
    assert ("x" in {unit for new in invented for unit in new.source}) is drawn


GREEK = Pair(("lang=ell",), tuple("λόγος"), tuple("λόγοι"))


@pytest.mark.parametrize("known", [PARTICIPLE, GREEK], ids=["German", "Greek"])
def test_letters_are_drawn_from_the_words_of_the_language(known: Pair) -> None:
    invented = hallucinated({"deu": [PARTICIPLE] * 9, "ell": [GREEK]}, copies=5, seed=1)
    letters = {unit for new in invented if new.marks == known.marks for unit in new.source}
    assert letters
    assert letters <= {*known.source}


# --- how many --------------------------------------------------------------------------------


def test_a_pair_without_a_stem_is_left_out() -> None:
    assert hallucinated({"": [pair("go", "went")]}, copies=3, seed=1) == []


@pytest.mark.parametrize("copies", [1, 3])
def test_each_pair_is_repeated(copies: int) -> None:
    pairs = [PARTICIPLE, *ALPHABET]
    assert len(hallucinated({"": pairs}, copies, seed=1)) == copies * len(pairs)


def test_a_seed_gives_the_same_pairs_again() -> None:
    assert invented_for(PARTICIPLE, seed=1) == invented_for(PARTICIPLE, seed=1)


def test_another_seed_gives_other_pairs() -> None:
    assert invented_for(PARTICIPLE, seed=1) != invented_for(PARTICIPLE, seed=2)
