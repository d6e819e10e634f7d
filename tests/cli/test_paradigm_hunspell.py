"""`onmt-entmax paradigm --format hunspell`: dictionaries, and the phrases beside them."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.automata import Key
from tests.cli.paradigms import Writer, form_weights, run_paradigm
from tests.cli.tables import write_table


def is_word(form: str) -> bool:
    """Return whether a form is neither empty nor several words."""
    return form.split() == [form]


@pytest.fixture(scope="module")
def weights(cell_probs: Mapping[Key, float]) -> dict[str, float]:
    """The weight of each form: the sum of its probabilities in all cells."""
    return form_weights(cell_probs)


def test_a_hunspell_dictionary_has_all_words(
    lemmas_writer: Writer, weights: dict[str, float]
) -> None:
    _count, *entries = lemmas_writer.write("hunspell").lines(".dic")
    assert sorted(entries) == sorted(form for form in weights if is_word(form))


def test_a_hunspell_dictionary_begins_with_the_number_of_its_words(
    lemmas_writer: Writer, weights: dict[str, float]
) -> None:
    count, *_ = lemmas_writer.write("hunspell").lines(".dic")
    assert int(count) == len([form for form in weights if is_word(form)])


@pytest.fixture
def phrases(weights: dict[str, float]) -> list[str]:
    """The forms that Hunspell cannot read as words."""
    phrases = sorted(form for form in weights if not is_word(form))
    assert len(phrases) > 1
    return phrases


def test_phrases_stand_apart_from_a_hunspell_dictionary(
    lemmas_writer: Writer, phrases: list[str]
) -> None:
    assert sorted(lemmas_writer.write("hunspell").lines(".phrases.txt")) == phrases


def test_a_hunspell_dictionary_without_its_phrases_is_not_complete(
    lemmas_writer: Writer, phrases: list[str], weights: dict[str, float]
) -> None:
    printed = lemmas_writer.write("hunspell").printed
    assert printed.startswith("incomplete: mass at least 0.")
    assert printed.endswith(
        f" in each cell; {len(phrases)} of {len(weights)} forms, which Hunspell cannot read as a "
        "word, are in .phrases.txt\n"
    )


def test_least_leaves_improbable_words_out_of_a_dictionary(
    lemmas_writer: Writer, cell_probs: Mapping[Key, float]
) -> None:
    """A form is left out if it reaches the probability in no cell."""
    least = 0.2
    _count, *entries = lemmas_writer.write("hunspell", "--least", least).lines(".dic")
    likely = {form for (_, _, form), prob in cell_probs.items() if prob >= least}
    improbable = {form for _, _, form in cell_probs} - likely
    assert set(entries) == set(filter(is_word, likely))
    assert any(map(is_word, improbable))


def test_a_list_of_lemmas_is_not_overwritten(
    paradigm_model: Path,
    cells_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It has the name that the dictionary would get: that of `--output` and the ending `.dic`."""
    lemmas = write_table(tmp_path / "lemmas.dic", "ab")
    options = ("--lemmas", lemmas, "--format", "hunspell", "--output", tmp_path / "lemmas")
    assert run_paradigm(paradigm_model, cells_file, "german", *options) == 2
    assert f"{lemmas}: is read, and would be overwritten" in capsys.readouterr().err
    assert lemmas.read_text() == "ab\n"


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
