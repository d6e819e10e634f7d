"""`onmt-entmax paradigm`: the forms of every cell, names of languages, and mistakes."""

import json
import shlex
from pathlib import Path

import pytest

from onmt_entmax.cli import inflect, paradigm
from onmt_entmax.inflector import Inflector
from tests.cli.paradigms import Record, cells_of, run_paradigm
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model
from tests.models import vocabularies_of

# --- the forms of a cell ---


@pytest.fixture
def cells(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Record]:
    """The records of all cells of the German verb ab."""
    # So many steps find every form of the small model.
    arguments = ("german", "ab", "--format", "json", "--budget", 1000)
    assert run_paradigm(paradigm_model, cells_file, *arguments) == 0
    return cells_of(json.loads(capsys.readouterr().out))


def test_a_paradigm_has_all_cells_of_a_part_of_speech(cells: dict[str, Record]) -> None:
    assert cells.keys() == {"V", "V;PST"}


@pytest.mark.parametrize("tags", ["V", "V;PST"])
def test_a_cell_has_every_form_of_inflect(
    cells: dict[str, Record], tags: str, paradigm_model: Path
) -> None:
    expected = Inflector([paradigm_model], n_best=0).inflect("german", "ab", tags)
    forms = cells[tags]["forms"]
    assert [form["form"] for form in forms] == [form.text for form in expected.forms]
    mass = sum(form["prob"] for form in forms)
    assert mass == pytest.approx(expected.certificate.mass, abs=1e-5)
    assert cells[tags]["certificate"] == "exhaustive"


def test_an_enumeration_that_finds_less_than_the_beam_is_not_used(paradigm_model: Path) -> None:
    """A budget of 0 allows no enumeration, one of 1 a single step."""
    beam, enumerated = (
        Inflector([paradigm_model], n_best=0, beam_size=2, budget=budget) for budget in (0, 1)
    )
    query = ("german", "b a", "V;PST")
    assert enumerated.inflect(*query) == beam.inflect(*query)


# --- languages, and mistakes ---


def test_a_language_may_be_named_by_its_code(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = ("ab", "--pos", "V", "--format", "csv")
    assert run_paradigm(paradigm_model, cells_file, "german", *verb) == 0
    by_name = capsys.readouterr().out
    assert by_name
    assert run_paradigm(paradigm_model, cells_file, "deu", *verb) == 0
    assert capsys.readouterr().out == by_name


def test_a_language_without_tags_has_no_paradigm_but_a_command_that_inflects(
    tmp_path: Path,
) -> None:
    """The error names that command."""
    model = write_model(tmp_path / "model", 4, vocabularies_of(("lang=ady", "a"), "a"), end=4)
    error = refusal(paradigm.main, ["ady", "a", "--model", model])
    assert "training data for ady has no tags" in error
    command = shlex.split(error[error.index("onmt-entmax inflect") : error.index(" prints")])
    assert command[2:] == ["--model", str(model), "ady", "a", ""]
    assert exit_status(inflect.main, command[2:]) == 0


ENGLISH_CELLS = "english has N (1 cell), V (1 cell); choose one"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param("english ab", f"--pos: {ENGLISH_CELLS}", id="no part of speech"),
        pytest.param("english ab --pos X", f"--pos: {ENGLISH_CELLS}", id="no such part of speech"),
        pytest.param(
            "dutch ab", "no cells of the language 'dutch' are known", id="no such language"
        ),
        pytest.param(
            "German ab",
            "no cells of the language 'German' are known; did you mean 'german'?",
            id="capital letter",
        ),
        pytest.param("german", "name one lemma, or a file of them with --lemmas", id="no lemma"),
        pytest.param("german ' '", "the lemma is empty", id="an empty lemma"),
        pytest.param(
            "german ab --format att", "--format att needs --output, a file", id="no output"
        ),
        pytest.param(
            "german 'a\tb' --pos V --format keyman --output o",
            "'a\\tb': a tab or line end, which a column cannot have",
            id="tab in a lemma",
        ),
        pytest.param(
            "german ab --format hunspell --output /dev/stdout",
            "--output /dev/stdout: --format hunspell writes several files, such as OUTPUT.dic and "
            "OUTPUT.aff; name a file",
            id="several files on the standard output",
        ),
    ],
)
def test_mistakes_are_one_line(
    paradigm_model: Path,
    cells_file: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    message: str,
) -> None:
    assert run_paradigm(paradigm_model, cells_file, *shlex.split(command)) == 2
    assert capsys.readouterr().err == f"paradigm.py: error: {message}\n"
