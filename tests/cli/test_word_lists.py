"""Lists of words in each format: forms that a format cannot hold."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.inflector import Form, Inflection, Question
from onmt_entmax.paradigm import WORD_LISTS, WordList
from tests.cli.automata import read_att
from tests.cli.paradigms import WHOLE_SUPPORT


def inflection_of(lemma: str, texts: Sequence[str]) -> Inflection:
    """Return an exhaustive answer whose forms have the same probability."""
    prob = 1 / len(texts)
    forms = tuple(Form(text, math.log(prob), prob) for text in texts)
    return Inflection(Question("x", lemma, ("N",)), forms, WHOLE_SUPPORT, (), only=False)


def odd_words(kind: str) -> WordList:
    """Return a list of forms with characters that are no letters, phrases, and no words."""
    words = WORD_LISTS[kind]()
    texts = ["м’яч", "a-b", "4a/b", "x\u0301", "of it", " led", "", "#a", "a\tb"]
    words.add(inflection_of("m\tn", texts))
    return words


@pytest.fixture
def dictionary() -> dict[str, list[str]]:
    """The lines of Hunspell's files, by name."""
    files = odd_words("hunspell").files(Path("o"))
    return {path.name: text.splitlines() for path, text in files.items()}


def test_a_dictionary_has_three_files(dictionary: dict[str, list[str]]) -> None:
    assert list(dictionary) == ["o.dic", "o.aff", "o.phrases.txt"]


def test_a_dictionary_names_the_characters_of_words_that_are_no_letters(
    dictionary: dict[str, list[str]],
) -> None:
    """Else Hunspell divides words there."""
    assert dictionary["o.dic"] == ["5", "#a", "4a\\/b", "a-b", "x\u0301", "м’яч"]
    assert dictionary["o.aff"][1:] == ["SET UTF-8", "WORDCHARS #-/4\u0301’"]


def test_phrases_and_forms_that_are_no_words_stand_apart(
    dictionary: dict[str, list[str]],
) -> None:
    assert dictionary["o.phrases.txt"] == ["", " led", "a\\tb", "of it"]


def test_a_dictionary_says_how_many_forms_stand_apart() -> None:
    assert odd_words("hunspell").completeness() == (
        "incomplete: mass at least 1.000000 in each cell; 4 of 9 forms, which Hunspell cannot read "
        "as a word, are in .phrases.txt"
    )


def test_a_keyman_list_leaves_out_what_its_lines_cannot_hold() -> None:
    (table,) = odd_words("keyman").files(Path("o")).values()
    *rows, comment = table.splitlines()
    sorted_words = sorted(["м’яч", "a-b", "4a/b", "x\u0301", "of it", " led"])
    assert [row.split("\t") for row in rows] == [[word, "111", "m\\tn"] for word in sorted_words]
    assert "3 of 9 forms, which Keyman cannot read as a word, are left out" in comment


def test_an_automaton_holds_every_form() -> None:
    assert odd_words("att").completeness() == "complete: mass 1.000000"


def words_with_line_marks(kind: str) -> WordList:
    """Return a list of forms with marks of columns (tab), lines (U+2028) and comments (#)."""
    words = WORD_LISTS[kind]()
    words.add(inflection_of("ab", ["a", "a\tb", "a\u2028", "#b", "b#"]))
    return words


LINE_MARKS = [
    pytest.param("hunspell", ["a\tb", "a\u2028"], id="hunspell"),
    pytest.param("keyman", ["#b", "a\tb", "a\u2028"], id="keyman"),
    pytest.param("att", [], id="att"),
]


@pytest.mark.parametrize(("kind", "others"), LINE_MARKS)
def test_forms_that_a_line_of_a_format_cannot_hold_are_no_words(
    kind: str, others: list[str]
) -> None:
    assert words_with_line_marks(kind).others() == others


@pytest.mark.parametrize(
    ("kind", "left_out"), [("hunspell", []), ("keyman", ["#b", "a\tb", "a\u2028"]), ("att", [])]
)
def test_only_keyman_has_no_place_for_other_forms(kind: str, left_out: list[str]) -> None:
    """Hunspell's third file has them."""
    assert words_with_line_marks(kind).left_out() == left_out


@pytest.mark.parametrize(("kind", "holds"), [("hunspell", True), ("keyman", False), ("att", True)])
def test_only_keyman_refuses_a_lemma_with_a_tab(kind: str, holds: bool) -> None:
    assert WORD_LISTS[kind]().holds_lemma("a\tb") == holds


@pytest.mark.parametrize(("kind", "others"), LINE_MARKS)
def test_a_list_is_complete_if_all_forms_are_words(kind: str, others: list[str]) -> None:
    beginning = "incomplete: " if others else "complete: "
    assert words_with_line_marks(kind).completeness().startswith(beginning)


def test_an_automaton_writes_such_characters_by_their_numbers() -> None:
    text = words_with_line_marks("att").files(Path("w"))[Path("w")]
    forms = {form for _, _, form in read_att(text.splitlines())}
    assert forms == {"a", "aU+0009b", "aU+2028", "#b", "b#"}
