"""Pairs with random stems."""

import pytest

from onmt_entmax.strings.hallucination import Pair, hallucinated, stem_of, stem_share

MARKS = ("lang=deu", "+V.PTCP", "+PST")
LETTERS = "abegilnstuvw"


def pair(source: str, target: str) -> Pair:
    return Pair(MARKS, tuple(source), tuple(target))


PARTICIPLE = pair("abwaschen", "abgewaschen")
# Often enough, so that every letter can be drawn.
ALPHABET = [pair(LETTERS, LETTERS), pair(LETTERS.upper(), LETTERS.upper())] * 2


def of_one(given: Pair, copies: int = 50, seed: int = 1) -> list[Pair]:
    """Return the pairs that are invented for one, with the letters of the alphabet."""
    others = hallucinated({"deu": ALPHABET}, copies, seed)
    found = hallucinated({"deu": [given, *ALPHABET]}, copies, seed)
    assert len(found) - len(others) in (0, copies)
    size = len(LETTERS)
    return [each for each in found if (len(each.source), len(each.target)) != (size, size)]


def test_a_stem_is_what_source_and_target_have_in_common() -> None:
    assert stem_of(PARTICIPLE) == [(2, 4, 7)]


def test_two_common_units_are_no_stem() -> None:
    assert stem_of(pair("ab", "ab")) == []


def test_a_stem_may_have_two_parts() -> None:
    assert stem_of(pair("bergab", "berxgab")) == [(0, 0, 3), (3, 4, 3)]


def test_the_share_of_a_source_that_is_its_stem() -> None:
    assert stem_share([PARTICIPLE]) == pytest.approx(7 / 9)
    assert stem_share([PARTICIPLE, pair("go", "went")]) == pytest.approx(7 / 18)


def test_marks_stay() -> None:
    assert {each.marks for each in of_one(PARTICIPLE)} == {MARKS}


def test_units_outside_the_stem_stay() -> None:
    for each in of_one(PARTICIPLE):
        assert each.source[:2] == tuple("ab")
        assert each.target[:4] == tuple("abge")


def test_the_stem_is_the_same_in_source_and_target() -> None:
    assert all(each.source[2:] == each.target[4:] for each in of_one(PARTICIPLE))


def test_each_letter_of_a_stem_is_drawn() -> None:
    stems = [each.source[2:] for each in of_one(PARTICIPLE)]
    assert all(len(set(letters)) > 5 for letters in zip(*stems, strict=True))


def test_capital_letters_are_drawn_for_capital_ones() -> None:
    for each in of_one(pair("Haus", "Hauses")):
        assert [letter.isupper() for letter in each.source] == [True, False, False, False]


def test_units_that_are_no_letters_stay() -> None:
    assert all(each.source[2] == "-" for each in of_one(pair("ab-ab", "ab-abs")))


def test_other_units_are_not_drawn() -> None:
    pairs = [pair("ab-ab", "ab-abs"), pair("abelin", "abelin")]
    invented = hallucinated({"deu": pairs}, 100, 1)
    assert all(each.source.count("-") == (each.source[2] == "-") for each in invented)


@pytest.mark.parametrize(("pairs_with_it", "drawn"), [(1, False), (2, True)])
def test_a_letter_is_drawn_if_one_of_500_pairs_has_it(pairs_with_it: int, drawn: bool) -> None:
    """Of one that fewer have, the vocabulary may lack the letter, or copy it."""
    pairs = [pair("abel", "abels")] * (1000 - pairs_with_it) + [pair("xyz", "xyzs")] * pairs_with_it
    invented = hallucinated({"deu": pairs}, 1, 1)
    assert len(invented) == 1000
    assert ("x" in {unit for each in invented for unit in each.source}) is drawn


def test_letters_are_those_of_the_language() -> None:
    pairs = {"deu": [PARTICIPLE] * 9, "ell": [Pair(("lang=ell",), tuple("λόγος"), tuple("λόγοι"))]}
    for each in hallucinated(pairs, 5, 1):
        assert set("λόγος").isdisjoint(each.source) == (each.marks == MARKS)


def test_a_pair_without_a_stem_is_left_out() -> None:
    assert hallucinated({"": [pair("go", "went")]}, 3, 1) == []


@pytest.mark.parametrize("copies", [1, 3])
def test_each_pair_is_repeated(copies: int) -> None:
    assert len(hallucinated({"": [PARTICIPLE, *ALPHABET]}, copies, 1)) == copies * 5


def test_the_seed_decides_the_letters() -> None:
    assert of_one(PARTICIPLE, seed=1) == of_one(PARTICIPLE, seed=1)
    assert of_one(PARTICIPLE, seed=1) != of_one(PARTICIPLE, seed=2)
