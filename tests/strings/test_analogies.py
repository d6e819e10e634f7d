"""Outputs by analogy: neighbours, their votes, and how much they count."""

import pytest

from onmt_entmax.strings.analogies import NEIGHBOURS, VOTE, Analogies
from onmt_entmax.strings.likeness import LIKENESSES
from onmt_entmax.strings.pairs import Pair

PLURAL = ("lang=german", "+N", "+PL")


def units(text: str) -> tuple[str, ...]:
    return tuple(text)


def pair(source: str, target: str, marks: tuple[str, ...] = PLURAL) -> Pair:
    return Pair(marks, units(source), units(target))


def distribution(pairs: list[Pair], source: str) -> dict[str, float]:
    """Return the probability of each output for a new source, by its text."""
    outputs = Analogies(pairs).distribution(PLURAL, units(source))
    return {"".join(output): probability for output, probability in outputs.items()}


# --- votes -----------------------------------------------------------------------------------


def test_each_unit_in_common_multiplies_a_vote() -> None:
    """`Tag` has two units in common with `Hag`, and one with `Zug`."""
    outputs = distribution([pair("Tag", "Tage"), pair("Zug", "Zugx")], "Hag")
    assert outputs == pytest.approx(
        {"Hage": VOTE**2 / (VOTE**2 + VOTE), "Hagx": VOTE / (VOTE**2 + VOTE)}
    )


@pytest.mark.parametrize("ending", ["x" * 1000, "xy" * 1000])
def test_long_words_have_votes(ending: str) -> None:
    """A float cannot hold a vote of 5**1000, nor 5**-1000 for a word that is so much shorter."""
    known = [pair(f"a{ending}", f"a{ending}e"), pair("c", "cn")]
    outputs = distribution(known, f"b{ending}")
    assert outputs.keys() == {f"b{ending}e", f"b{ending}n"}
    assert all(probability > 0 for probability in outputs.values())
    assert sum(outputs.values()) == pytest.approx(1)


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


def test_the_order_of_the_pairs_does_not_matter() -> None:
    """Eleven words are equally similar, and ten of them vote."""
    known = [pair(f"{letter}ag", f"{letter}ag{letter}") for letter in "abcdefghijk"]
    assert len(known) == NEIGHBOURS + 1
    outputs = distribution(known, "xag")
    assert len(outputs) == NEIGHBOURS
    assert distribution(known[::-1], "xag") == outputs


# --- which words are similar -----------------------------------------------------------------


def test_if_last_units_tell_the_ending_only_these_count() -> None:
    known = [pair(f"{letter}a", f"{letter}as") for letter in "bcd"]
    assert Analogies(known).measured["lang=german"].likeness == LIKENESSES[0]


def test_if_vowels_tell_the_ending_units_inside_count() -> None:
    """The last letters mislead: each is also that of a word with the other vowel and ending."""
    known = [pair(word, f"{word}s") for word in ("bad", "gak", "man", "sal")]
    known += [pair(word, f"{word}r") for word in ("pid", "tik", "fin", "hil")]
    measured = Analogies(known).measured["lang=german"]
    assert measured.likeness.inside > 0
    assert measured.accuracy == 1


# --- how much analogies count ----------------------------------------------------------------


def test_the_weight_follows_from_the_accuracy() -> None:
    """Of three words, `b`'s target follows from that of `ab`, and the other way round."""
    analogies = Analogies([pair("ab", "abs"), pair("b", "bs"), pair("c", "cz")])
    assert analogies.measured["lang=german"].accuracy == pytest.approx(2 / 3)
    mixed = 0.8 * (2 / 3)
    assert analogies.weight(PLURAL) == pytest.approx(mixed / (1 + mixed))


def test_languages_have_accuracies_of_their_own() -> None:
    other = ("lang=finnish", "+N")
    known = [pair("a", "ax"), pair("b", "bx"), pair("a", "ay", other), pair("b", "bz", other)]
    analogies = Analogies(known)
    accuracies = {language: measured.accuracy for language, measured in analogies.measured.items()}
    assert accuracies == {"lang=german": 1.0, "lang=finnish": 0.0}
    assert analogies.weight(other) == 0


def test_the_accuracy_is_that_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four pairs the first and the third are tried, and not that of the plural."""
    monkeypatch.setattr("onmt_entmax.strings.analogies._SAMPLE", 2)
    singular = ("lang=german", "+A")  # sorted before the plural, where a single pair has no analogy
    known = [pair(f"{x}ag", f"{x}ages", singular) for x in "abc"]
    measured = Analogies([*known, pair("dag", "dage")]).measured
    assert measured["lang=german"].accuracy == 1


def test_sources_without_a_language_have_an_accuracy() -> None:
    measured = Analogies([pair("a", "ax", ()), pair("b", "bx", ())]).measured
    assert measured[""].accuracy == 1


def test_an_unknown_language_has_no_weight() -> None:
    assert Analogies([pair("a", "ax"), pair("b", "bx")]).weight(("lang=latin", "+N")) == 0
