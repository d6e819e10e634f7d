"""`onmt-entmax paradigm`: the forms of every cell, its page, names of languages, and mistakes."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.cli import inflect, paradigm
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import Inflector
from onmt_entmax.search import SearchConfig, SearchTask
from tests.cli.paradigms import run_paradigm
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model
from tests.models import vocabularies_of

Record = dict[str, Any]

# --- the forms of a cell ---


def cells_of(paradigm: Record) -> dict[str, Record]:
    """Return the records of the cells of a lemma's paradigm, by their tags."""
    (section,) = paradigm["sections"]
    return {cell["tags"]: cell for cell in section["cells"]}


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


# --- the page ---


class Page(NamedTuple):
    """The page of a paradigm, and what `serve` knows and answers of the same cells."""

    text: str
    answering: Answering


def copy_with_cells_file(model: Path, copy: Path, cells: Path) -> Path:
    """Copy a model folder, and add the cells, which `serve` reads from the folder alone."""
    shutil.copytree(model, copy)
    shutil.copy(cells, copy)
    write_list(copy)
    return copy


@pytest.fixture
def page(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Page:
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", "--format", "html") == 0
    return Page(
        text=capsys.readouterr().out,
        answering=Answering(
            copy_with_cells_file(paradigm_model, tmp_path / "model", cells_file),
            SearchTask(SearchConfig()),
        ),
    )


def test_serve_counts_the_cells_of_each_part_of_speech(page: Page) -> None:
    assert page.answering.description()["pos"]["english"] == {"V": 1, "N": 1}


def test_the_page_and_serve_show_the_same_forms(page: Page) -> None:
    paradigm = page.answering.answer({"language": "german", "source": "ab", "pos": "V"})
    forms = [form["form"] for cell in cells_of(paradigm).values() for form in cell["forms"]]
    assert forms
    assert all(f"<bdi>{form}</bdi>" in page.text for form in forms)


def test_a_page_is_named_after_its_only_lemma(page: Page) -> None:
    assert "<title>ab (german)</title>" in page.text


def test_a_page_of_several_lemmas_has_a_heading_for_each(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lemmas = tmp_path / "lemmas"
    lemmas.write_text("ab\nb\n", encoding="utf-8")
    arguments = ("german", "--lemmas", lemmas, "--format", "html")
    assert run_paradigm(paradigm_model, cells_file, *arguments) == 0
    text = capsys.readouterr().out
    assert "<title>paradigms</title>" in text
    assert re.findall("<h2><bdi>(.*?)</bdi>", text) == ["ab", "b"]


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
