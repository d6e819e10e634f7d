"""Word lists for Hunspell, Keyman and HFST: what files contain, and forms that are not words."""

from pathlib import Path

import pytest

from onmt_entmax.paradigm import WORD_LISTS, WordList
from tests.cli.automata import read_att
from tests.paradigm.cells import cell_of

FORMATS = tuple(WORD_LISTS)


def word_list(kind: str, *forms: str, lemma: str = "lemma") -> WordList:
    """Return the list of one cell in a format.

    Args:
        kind: name of the format, one of `FORMATS`.
        forms: all forms of the cell, equally probable.
        lemma: the word that the forms belong to.
    """
    words = WORD_LISTS[kind]()
    words.add(cell_of(*forms, lemma=lemma))
    return words


def lines_of(words: WordList) -> dict[str, list[str]]:
    """Return the lines of each file of a list, by the names that `--output o` gives."""
    return {path.name: text.splitlines() for path, text in words.files(Path("o")).items()}


def settings_of(*forms: str) -> list[str]:
    """Return the lines of a Hunspell dictionary's `.aff` without the comment before them."""
    comment, *settings = lines_of(word_list("hunspell", *forms))["o.aff"]
    assert comment.startswith("#")
    return settings


def entries_of(*forms: str, lemma: str = "lemma") -> list[str]:
    """Return the lines of a Keyman list without the comment at its end."""
    *entries, comment = lines_of(word_list("keyman", *forms, lemma=lemma))["o"]
    assert comment.startswith("#")
    return entries


# --- Hunspell ---


def test_a_dictionary_has_three_files() -> None:
    assert [*lines_of(word_list("hunspell", "a"))] == ["o.dic", "o.aff", "o.phrases.txt"]


def test_a_dictionary_begins_with_the_number_of_its_words() -> None:
    assert lines_of(word_list("hunspell", "b", "a"))["o.dic"] == ["2", "a", "b"]


def test_a_dictionary_escapes_slashes() -> None:
    """What follows a slash would be read as flags of the word."""
    assert lines_of(word_list("hunspell", "a/b"))["o.dic"] == ["1", "a\\/b"]


def test_a_dictionary_lists_the_characters_of_its_words_that_are_not_letters() -> None:
    """Hunspell divides a text at characters that are neither letters nor in WORDCHARS."""
    settings = settings_of("м’яч", "a-b", "4a/b", "x\u0301", "#a")
    assert settings == ["SET UTF-8", "WORDCHARS #-/4\u0301’"]


def test_a_dictionary_of_letters_alone_lists_no_characters() -> None:
    assert settings_of("ab") == ["SET UTF-8"]


def test_phrases_have_a_file_of_their_own() -> None:
    lines = lines_of(word_list("hunspell", "word", "of it"))
    assert (lines["o.dic"], lines["o.phrases.txt"]) == (["1", "word"], ["of it"])


def test_phrases_are_printable() -> None:
    assert lines_of(word_list("hunspell", "a\tb"))["o.phrases.txt"] == ["a\\tb"]


# --- Keyman ---


def test_a_keyman_list_has_a_word_its_weight_and_its_lemma_on_each_line() -> None:
    """The weights of a cell's words add up to 1,000."""
    assert entries_of("b", "a") == ["a\t500\tlemma", "b\t500\tlemma"]


def test_a_keyman_list_has_phrases() -> None:
    assert entries_of("of it") == ["of it\t1000\tlemma"]


def test_a_keyman_list_has_printable_lemmas() -> None:
    assert entries_of("a", lemma="m\tn") == ["a\t1000\tm\\tn"]


def test_a_keyman_list_lacks_the_forms_that_it_cannot_hold() -> None:
    assert entries_of("a", "", "#b") == ["a\t333\tlemma"]


def test_a_keyman_list_ends_with_its_completeness() -> None:
    words = word_list("keyman", "a", "#b")
    *_, comment = lines_of(words)["o"]
    assert comment == f"# {words.completeness()}"


@pytest.mark.parametrize(("kind", "holds"), [("hunspell", True), ("keyman", False), ("att", True)])
def test_only_keyman_cannot_hold_a_lemma_with_a_tab(kind: str, holds: bool) -> None:
    assert WORD_LISTS[kind]().holds_lemma("a\tb") == holds


# --- an automaton for HFST ---


def test_an_automaton_writes_column_and_line_ends_by_their_numbers() -> None:
    lines = lines_of(word_list("att", "a\tb", "a\u2028", "#b"))["o"]
    assert {form for _, _, form in read_att(lines)} == {"aU+0009b", "aU+2028", "#b"}


# --- forms that a format cannot hold as words, in all formats ---


@pytest.mark.parametrize(
    ("form", "formats"),
    [
        pytest.param("word", {"hunspell", "keyman", "att"}, id="word"),
        pytest.param("a#", {"hunspell", "keyman", "att"}, id="hash at the end"),
        pytest.param("#a", {"hunspell", "att"}, id="hash at the beginning"),
        pytest.param("of it", {"keyman", "att"}, id="phrase"),
        pytest.param(" led", {"keyman", "att"}, id="space before a word"),
        pytest.param("", {"att"}, id="empty"),
        pytest.param("a\tb", {"att"}, id="tab"),
        pytest.param("a\u2028", {"att"}, id="line separator"),
    ],
)
def test_a_form_is_a_word_of_these_formats(form: str, formats: set[str]) -> None:
    assert {kind for kind in FORMATS if not word_list(kind, form).others()} == formats


@pytest.mark.parametrize(
    ("kind", "left_out"), [("hunspell", []), ("keyman", ["", "a\tb"]), ("att", [])]
)
def test_only_keyman_leaves_forms_out(kind: str, left_out: list[str]) -> None:
    """Hunspell's phrases and an automaton have every form."""
    assert word_list(kind, "word", "a\tb", "").left_out() == left_out


@pytest.mark.parametrize("kind", FORMATS)
def test_a_list_is_complete_if_all_its_forms_are_words(kind: str) -> None:
    assert word_list(kind, "a", "b").completeness() == "complete: mass 1.000000"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("hunspell", "which Hunspell cannot read as a word, are in .phrases.txt"),
        ("keyman", "which Keyman cannot read as a word, are left out"),
    ],
)
def test_a_list_is_incomplete_if_a_form_is_not_a_word(kind: str, reason: str) -> None:
    assert word_list(kind, "a", "a\tb").completeness() == (
        f"incomplete: mass at least 1.000000 in each cell; 1 of 2 forms, {reason}"
    )
