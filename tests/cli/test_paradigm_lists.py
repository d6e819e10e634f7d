"""`onmt-entmax paradigm`: lists of words for Hunspell and Keyman, and automata (AT&T)."""

import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from onmt_entmax.inflector import Inflector
from onmt_entmax.paradigm.word_formats import KeymanList
from tests.cli.automata import Key, read_att
from tests.cli.paradigms import Writer, run_paradigm


@pytest.fixture(scope="module")
def cell_probs(paradigm_model: Path) -> dict[Key, float]:
    """The probability of every form in its cell, by lemma, tags and form."""
    inflector = Inflector([paradigm_model], n_best=0)
    return {
        (lemma, tags, form.text): form.prob
        for lemma in ("ab", "b a")
        for tags in ("V", "V;PST")
        for form in inflector.inflect("german", lemma, tags).forms
    }


@pytest.fixture(scope="module")
def weights(cell_probs: dict[Key, float]) -> dict[str, float]:
    """The weight of each form: the sum of its probabilities in all cells."""
    sums: dict[str, float] = defaultdict(float)
    for (_, _, form), prob in cell_probs.items():
        sums[form] += prob
    return sums


def is_word(form: str) -> bool:
    """Tell whether a form is neither empty nor several words."""
    return form.split() == [form]


@pytest.fixture(scope="module")
def lemmas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of two lemmas, named as Hunspell's lists of words; only the first column is read."""
    path = tmp_path_factory.mktemp("lemmas") / "lemmas.dic"
    path.write_text("ab\nb a\tV\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def writer(
    paradigm_model: Path, cells_file: Path, lemmas: Path, tmp_path_factory: pytest.TempPathFactory
) -> Writer:
    """Writes the lists of both lemmas."""
    folder = tmp_path_factory.mktemp("lists")
    return Writer(paradigm_model, cells_file, folder, "--lemmas", lemmas)


# --- Hunspell ---


def test_a_hunspell_dictionary_has_all_words(writer: Writer, weights: dict[str, float]) -> None:
    _count, *entries = writer.write("hunspell").lines(".dic")
    assert sorted(entries) == sorted(form for form in weights if is_word(form))


def test_a_hunspell_dictionary_begins_with_the_number_of_its_words(
    writer: Writer, weights: dict[str, float]
) -> None:
    count, *_ = writer.write("hunspell").lines(".dic")
    assert int(count) == len([form for form in weights if is_word(form)])


@pytest.fixture
def phrases(weights: dict[str, float]) -> list[str]:
    """The forms that Hunspell cannot read as words."""
    phrases = sorted(form for form in weights if not is_word(form))
    assert len(phrases) > 1
    return phrases


def test_phrases_stand_apart_from_a_hunspell_dictionary(writer: Writer, phrases: list[str]) -> None:
    assert sorted(writer.write("hunspell").lines(".phrases.txt")) == phrases


def test_a_hunspell_dictionary_without_its_phrases_is_not_complete(
    writer: Writer, phrases: list[str], weights: dict[str, float]
) -> None:
    printed = writer.write("hunspell").printed
    assert printed.startswith("incomplete: mass at least 0.")
    assert printed.endswith(
        f" in each cell; {len(phrases)} of {len(weights)} forms, which Hunspell cannot read as a "
        "word, are in .phrases.txt\n"
    )


def test_least_leaves_improbable_words_out_of_a_dictionary(
    writer: Writer, cell_probs: dict[Key, float]
) -> None:
    """A form is left out if it reaches the probability in no cell."""
    least = 0.2
    _count, *entries = writer.write("hunspell", "--least", least).lines(".dic")
    likely = {form for (_, _, form), prob in cell_probs.items() if prob >= least}
    improbable = {form for _, _, form in cell_probs} - likely
    assert set(entries) == set(filter(is_word, likely))
    assert any(map(is_word, improbable))


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
    assert done.stdout.split() == ["bbabbabba"]  # misspelt


# --- Keyman ---


def test_a_keyman_list_has_all_forms_with_their_weights(
    writer: Writer, weights: dict[str, float]
) -> None:
    """A weight is a whole number of thousandths, and at least 1."""
    *lines, _comment = writer.write("keyman").lines()
    rows = [line.split("\t") for line in lines]
    assert {word: int(weight) for word, weight, _lemma in rows} == {
        form: max(round(1000 * weight), 1) for form, weight in weights.items() if form
    }


def test_a_keyman_list_ends_with_what_is_printed(writer: Writer) -> None:
    written = writer.write("keyman")
    assert written.lines()[-1] == f"# {written.printed.strip()}"


def test_forms_that_a_keyman_list_leaves_out_are_named(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here `a` stands for a form that the format cannot hold."""
    monkeypatch.setattr(KeymanList, "is_word", lambda _, form: form != "a")
    errors = Writer(paradigm_model, cells_file, tmp_path, "ab").write("keyman").errors
    assert "warning: left out, as no line of the list can hold them: 'a'" in errors


def test_a_keyman_list_of_all_forms_has_no_warning(writer: Writer) -> None:
    assert "left out" not in writer.write("keyman").errors


# --- an automaton ---


def test_an_automaton_has_the_probability_of_every_form_in_its_cell(
    writer: Writer, cell_probs: dict[Key, float]
) -> None:
    assert read_att(writer.write("att").lines()) == pytest.approx(cell_probs, rel=1e-4)


def test_an_automaton_is_complete(writer: Writer) -> None:
    """Its mass is below 1: a search excludes sequences with symbols that are not characters."""
    assert writer.write("att").printed.startswith("complete: mass 0.9")
