"""Outputs by analogy: neighbours, their votes, and how much they count."""

import random
from itertools import takewhile

import pytest

from onmt_entmax.strings.analogies import NEIGHBOURS, VOTE, Analogies, analogous_target
from onmt_entmax.strings.pairs import Pair

PLURAL = ("lang=german", "+N", "+PL")


def units(text: str) -> tuple[str, ...]:
    return tuple(text)


def pair(source: str, target: str, marks: tuple[str, ...] = PLURAL) -> Pair:
    return Pair(marks, units(source), units(target))


def common_ending(word: str, other: str) -> int:
    """Return the number of characters with which both words end."""
    pairs = zip(reversed(word), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def distribution(pairs: list[Pair], source: str) -> dict[str, float]:
    """Return the probability of each output, by its text."""
    outputs = Analogies(pairs).distribution(PLURAL, units(source))
    return {"".join(output): probability for output, probability in outputs.items()}


# --- one analogy -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "known", "target", "expected"),
    [
        pytest.param("Eisenzeit", "Jahreszeit", "Jahreszeiten", "Eisenzeiten", id="ending"),
        pytest.param("verlegen", "verlagen", "gevlagt", None, id="a beginning that is lost"),
        pytest.param("anrufen", "abrufen", "rief ab", "rief an", id="moved to the end"),
        pytest.param("waschen", "abwaschen", "abgewaschen", "gewaschen", id="a shorter word"),
        pytest.param("abwaschen", "waschen", "gewaschen", "abgewaschen", id="a longer word"),
        pytest.param("haus", "gasthaus", "gast", None, id="nothing would be left"),
    ],
)
def test_an_analogy_changes_a_source_as_the_known_pair_does(
    source: str, known: str, target: str, expected: str | None
) -> None:
    """The words share their end, of which the function is told the length."""
    common = common_ending(source, known)
    form = analogous_target(units(source), units(known), units(target), common)
    assert form == (None if expected is None else units(expected))


# --- votes -----------------------------------------------------------------------------------


def test_each_unit_in_common_multiplies_a_vote() -> None:
    """`Tag` has two units in common with `Hag`, and one with `Zug`."""
    outputs = distribution([pair("Tag", "Tage"), pair("Zug", "Zugx")], "Hag")
    assert outputs == pytest.approx(
        {"Hage": VOTE**2 / (VOTE**2 + VOTE), "Hagx": VOTE / (VOTE**2 + VOTE)}
    )


@pytest.mark.parametrize("common", [500, 5000])
def test_long_words_in_common_vote_as_short_ones_do(common: int) -> None:
    """A float cannot hold a vote of 5**500."""
    ending = "x" * common
    near, far = pair(f"bax{ending}", f"bax{ending}e"), pair(f"ca{ending}", f"ca{ending}n")
    outputs = distribution([near, far], f"dax{ending}")
    assert outputs[f"dax{ending}e"] == pytest.approx(VOTE**2 / (VOTE**2 + 1))
    assert sum(outputs.values()) == pytest.approx(1)


def test_a_vote_that_rounds_to_zero_is_not_an_output() -> None:
    ending = "x" * 1000
    outputs = distribution([pair(f"b{ending}", f"b{ending}e"), pair("by", "byn")], f"c{ending}")
    assert outputs == {f"c{ending}e": pytest.approx(1)}


def test_only_the_nearest_words_vote() -> None:
    """All but one of them in the same way; `zug` is one too many."""
    beginnings = "abcdefghijklm"[: NEIGHBOURS - 1]
    near = [pair(f"{beginning}ag", f"{beginning}age") for beginning in beginnings]
    outputs = distribution([*near, pair("wag", "wagx"), pair("zug", "zuge")], "tag")
    assert outputs == pytest.approx({"tage": 1 - 1 / NEIGHBOURS, "tagx": 1 / NEIGHBOURS})


def test_other_words_of_the_same_source_do_not_count() -> None:
    assert distribution([pair("Bank", "Bänke"), pair("Bank", "Banken")], "Bank") == {}


def test_words_of_other_tags_do_not_count() -> None:
    other = ("lang=german", "+N", "+SG")
    assert distribution([pair("Tag", "Tags", other)], "Hag") == {}


def test_the_neighbours_are_those_of_a_search_through_all_words() -> None:
    """Random words have as many units in common with their neighbours as by brute force."""
    generator = random.Random(7)
    words = {"".join(generator.choices("ab", k=generator.randint(1, 6))) for _ in range(200)}
    analogies = Analogies([pair(word, word) for word in words])
    assert len(words) > 4 * NEIGHBOURS
    for word in sorted(words):
        expected = sorted((common_ending(word, other) for other in words - {word}), reverse=True)
        neighbours = [number for number, _ in analogies._neighbours(PLURAL, units(word))]
        assert neighbours == expected


# --- how much analogies count ----------------------------------------------------------------


def test_the_weight_grows_with_the_accuracy() -> None:
    """Analogies find two of three targets: that of `b` from `ab`, and the other way round."""
    analogies = Analogies([pair("ab", "abs"), pair("b", "bs"), pair("c", "cz")])
    assert analogies.accuracies == {"lang=german": pytest.approx(2 / 3)}
    mixed = 0.8 * (2 / 3) ** 2
    assert analogies.weight(PLURAL) == pytest.approx(mixed / (1 + mixed))


def test_languages_have_accuracies_of_their_own() -> None:
    other = ("lang=finnish", "+N")
    known = [pair("a", "ax"), pair("b", "bx"), pair("a", "ay", other), pair("b", "bz", other)]
    analogies = Analogies(known)
    assert analogies.accuracies == {"lang=german": 1.0, "lang=finnish": 0.0}
    assert analogies.weight(other) == 0


def test_sources_without_a_language_have_an_accuracy() -> None:
    assert Analogies([pair("a", "ax", ()), pair("b", "bx", ())]).accuracies == {"": 1.0}


def test_an_unknown_language_has_no_weight() -> None:
    assert Analogies([pair("a", "ax"), pair("b", "bx")]).weight(("lang=latin", "+N")) == 0
