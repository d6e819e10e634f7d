"""`onmt-entmax paradigm`: lists of words for Hunspell and Keyman, and automata (AT&T)."""

import math
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.inflector import Form, Inflection, Inflector, Question
from onmt_entmax.paradigm import WORD_LISTS, WordList
from onmt_entmax.paradigm.word_formats import KeymanList
from tests.cli.paradigms import WHOLE_SUPPORT, run_paradigm

Key = tuple[str, str, str]  # lemma, tags and form


def read_att(lines: Sequence[str]) -> dict[Key, float]:
    """Read an automaton in AT&T's format; return the probability of each path.

    An arc is a line of source, target, upper symbol, lower symbol and maybe a weight, its negative
    log-probability; a state alone is an end. Epsilon and space have names.
    """
    ends = {int(line) for line in lines if "\t" not in line}
    arcs = defaultdict(list)
    for source, target, upper, lower, *weight in (
        line.split("\t") for line in lines if "\t" in line
    ):
        cost = float(weight[0]) if weight else 0.0
        arcs[int(source)].append((int(target), upper, lower, cost))
    symbols = {"@0@": "", "@_SPACE_@": " "}
    paths: dict[Key, float] = {}
    stack = [(0, "", "", 0.0)]
    while stack:
        state, query, form, weight = stack.pop()
        if state in ends:
            lemma, *tags = query.split("+")
            paths[lemma, ";".join(tags), form] = math.exp(-weight)
        for target, upper, lower, cost in arcs[state]:
            longer = query + symbols.get(upper, upper), form + symbols.get(lower, lower)
            stack.append((target, *longer, weight + cost))
    return paths


# --- lists of two lemmas ---


@pytest.fixture(scope="module")
def cell_probs(paradigm_model: Path) -> dict[Key, float]:
    """The probability of every form in its cell."""
    inflector = Inflector([paradigm_model], n_best=0)
    return {
        (lemma, tags, form.text): form.prob
        for lemma in ("ab", "b a")
        for tags in ("V", "V;PST")
        for form in inflector.inflect("german", lemma, tags).forms
    }


@pytest.fixture(scope="module")
def expected(cell_probs: dict[Key, float]) -> dict[str, float]:
    """The sum of the probabilities of each form."""
    sums: dict[str, float] = defaultdict(float)
    for (_, _, form), prob in cell_probs.items():
        sums[form] += prob
    return sums


def is_word(form: str) -> bool:
    """Tell whether a form is neither empty nor several words."""
    return form.split() == [form]


class Written(NamedTuple):
    """A list, and what the command printed."""

    folder: Path
    printed: str

    def lines(self, name: str) -> list[str]:
        return (self.folder / name).read_text("utf-8").splitlines()


@pytest.fixture
def lemmas(tmp_path: Path) -> Path:
    """A list of lemmas, as of Hunspell."""
    path = tmp_path / "lemmas.dic"
    path.write_text("ab\nb a\tV\n", encoding="utf-8")
    return path


@pytest.fixture
def write_list(
    paradigm_model: Path,
    cells_file: Path,
    lemmas: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Written]:
    """Return a function that writes the list `w` in a format, with further options."""

    def write(kind: str, *options: object) -> Written:
        words = ("german", "--lemmas", lemmas, "--budget", 2000, "--format", kind)
        output = ("--output", tmp_path / "w")
        assert run_paradigm(paradigm_model, cells_file, *words, *output, *options) == 0
        return Written(tmp_path, capsys.readouterr().out)

    return write


def test_a_hunspell_dictionary_has_all_words(
    write_list: Callable[..., Written], expected: dict[str, float]
) -> None:
    """After their number."""
    count, *entries = write_list("hunspell").lines("w.dic")
    words = {form for form in expected if is_word(form)}
    assert int(count) == len(words)
    assert set(entries) == words


def test_phrases_stand_apart_from_a_hunspell_dictionary(
    write_list: Callable[..., Written], expected: dict[str, float]
) -> None:
    written = write_list("hunspell")
    phrases = written.lines("w.phrases.txt")
    others = {form for form in expected if not is_word(form)}
    assert len(phrases) == len(others) > 1
    assert set(phrases) == others
    assert written.printed.startswith("incomplete: mass at least 0.")
    assert written.printed.endswith(
        f" in each cell; {len(phrases)} of {len(expected)} forms, which Hunspell cannot read as a "
        "word, are in .phrases.txt\n"
    )


def test_least_leaves_improbable_words_out_of_a_dictionary(
    write_list: Callable[..., Written], cell_probs: dict[Key, float]
) -> None:
    written = write_list("hunspell", "--least", 0.2)
    _, *entries = written.lines("w.dic")
    likely = {form for (_, _, form), prob in cell_probs.items() if prob >= 0.2}
    assert set(entries) == {form for form in likely if is_word(form)}
    assert written.printed.startswith("incomplete: mass at least 0.")


def test_a_keyman_list_has_all_forms_with_their_weights(
    write_list: Callable[..., Written], expected: dict[str, float]
) -> None:
    *lines, _ = write_list("keyman").lines("w")
    weights = {word: int(weight) for word, weight, _ in (line.split("\t") for line in lines)}
    assert weights.keys() == expected.keys() - {""}
    for word, weight in weights.items():
        assert weight == max(round(1000 * expected[word]), 1)


def test_a_keyman_list_ends_with_what_is_printed(write_list: Callable[..., Written]) -> None:
    written = write_list("keyman")
    assert written.lines("w")[-1] == f"# {written.printed.strip()}"


def test_an_automaton_has_the_probability_of_every_form_in_its_cell(
    write_list: Callable[..., Written], cell_probs: dict[Key, float]
) -> None:
    assert read_att(write_list("att").lines("w")) == pytest.approx(cell_probs, rel=1e-4)


def test_an_automaton_is_complete(write_list: Callable[..., Written]) -> None:
    """Sequences with symbols that are no characters, which a search excludes, have the rest."""
    assert write_list("att").printed.startswith("complete: mass 0.9")


def test_a_list_of_lemmas_is_not_overwritten(
    paradigm_model: Path,
    cells_file: Path,
    lemmas: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = ("--format", "hunspell", "--output", lemmas.with_suffix(""))
    words = ("german", "--lemmas", lemmas, *output)
    assert run_paradigm(paradigm_model, cells_file, *words) == 2
    assert "is read, and would be overwritten" in capsys.readouterr().err


def test_tables_of_several_lemmas_follow_each_other(
    paradigm_model: Path,
    cells_file: Path,
    lemmas: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_paradigm(paradigm_model, cells_file, "german", "--lemmas", lemmas) == 0
    assert "\n\nb a\n\nverb" in capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("hunspell"), reason="hunspell is not installed")
def test_hunspell_accepts_the_words_of_a_dictionary(
    paradigm_model: Path, cells_file: Path, tmp_path: Path
) -> None:
    words = ("english", "ab", "--pos", "V", "--format", "hunspell", "--output", tmp_path / "w")
    assert run_paradigm(paradigm_model, cells_file, *words, "--least", 0.1) == 0
    _, *entries = (tmp_path / "w.dic").read_text("utf-8").splitlines()
    command = ["hunspell", "-d", str(tmp_path / "w"), "-l"]
    text = "\n".join([*entries, "bbabbabba"])
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bbabbabba"]


# --- forms that a format cannot hold ---


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
    held = sorted(["м’яч", "a-b", "4a/b", "x\u0301", "of it", " led"])
    assert [row.split("\t") for row in rows] == [[word, "111", "m\\tn"] for word in held]
    assert "3 of 9 forms, which Keyman cannot read as a word, are left out" in comment


def test_an_automaton_holds_everything() -> None:
    assert odd_words("att").completeness() == "complete: mass 1.000000"


def words_with_line_marks(kind: str) -> WordList:
    """Return a list of forms with tabs, which divide columns, and #, which begins a comment."""
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


@pytest.mark.parametrize(("kind", "others"), LINE_MARKS)
def test_a_list_is_complete_if_all_forms_are_words(kind: str, others: list[str]) -> None:
    said = words_with_line_marks(kind).completeness()
    assert said.startswith("incomplete: " if others else "complete: ")


def test_an_automaton_writes_such_characters_by_their_numbers() -> None:
    text = words_with_line_marks("att").files(Path("w"))[Path("w")]
    forms = {form for _, _, form in read_att(text.splitlines())}
    assert forms == {"a", "aU+0009b", "aU+2028", "#b", "b#"}


def test_forms_that_are_left_out_are_named(
    paradigm_model: Path,
    cells_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("german", "ab", "--pos", "V", "--format", "keyman", "--output", tmp_path / "w")
    assert run_paradigm(paradigm_model, cells_file, *words) == 0
    assert "left out" not in capsys.readouterr().err
    monkeypatch.setattr(KeymanList, "is_word", lambda _, form: form != "a")
    assert run_paradigm(paradigm_model, cells_file, *words) == 0
    assert "warning: left out, as no line of the list can hold them: 'a'" in capsys.readouterr().err
