"""`onmt-entmax paradigm`: every form of every cell as tables, records and pages."""

import csv
import json
import math
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.cli import inflect, paradigm
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import Form, Inflection, Inflector, Question
from onmt_entmax.paradigm import WarningCounts, as_csv, as_html, as_text, cell_text, sections
from onmt_entmax.paradigm.texts import terminal_width
from onmt_entmax.search import SearchConfig, SearchTask
from tests.cli.paradigms import WHOLE_SUPPORT, run_paradigm
from tests.in_process import exit_status, refusal
from tests.inflection_models import VOCABULARIES, write_model
from tests.models import words

# --- the forms of a cell ---


@pytest.fixture(scope="module")
def everything(paradigm_model: Path) -> Inflector:
    """Lists all forms."""
    return Inflector([paradigm_model], n_best=0)


@pytest.fixture
def cells(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """The records of all cells of a verb."""
    arguments = ("german", "ab", "--format", "json", "--budget", 1000)
    assert run_paradigm(paradigm_model, cells_file, *arguments) == 0
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    cells: list[dict[str, Any]] = section["cells"]
    return cells


def test_a_paradigm_has_all_cells_of_a_part_of_speech(cells: list[dict[str, Any]]) -> None:
    assert {cell["tags"] for cell in cells} == {"V", "V;PST"}


def test_a_cell_has_every_form_of_inflect(
    cells: list[dict[str, Any]], everything: Inflector
) -> None:
    for cell in cells:
        expected = everything.inflect("german", "ab", cell["tags"])
        assert [form["form"] for form in cell["forms"]] == [form.text for form in expected.forms]
        mass = sum(form["prob"] for form in cell["forms"])
        assert mass == pytest.approx(expected.certificate.mass, abs=1e-5)
        assert cell["certificate"] == "exhaustive"


def test_an_enumeration_that_finds_less_than_the_beam_is_not_used(paradigm_model: Path) -> None:
    """Here it has one step."""
    beam, enumerated = (
        Inflector([paradigm_model], n_best=0, beam_size=2, budget=budget) for budget in (0, 1)
    )
    query = "german", "b a", "V;PST"
    assert enumerated.inflect(*query) == beam.inflect(*query)


# --- tables ---


def cell_of(tags: str) -> Inflection:
    """Return a cell of these tags with a form."""
    question = Question("german", "ab", tuple(tags.split(";")))
    return Inflection(question, (Form("ab", 0.0, 1.0),), WHOLE_SUPPORT, (), only=True)


class Tables(NamedTuple):
    """How cells are arranged."""

    tags: Sequence[str]
    titles: Sequence[str]
    rows: tuple[str, ...]
    """Of the first table."""
    columns: tuple[str, ...]


ARRANGEMENTS = {
    "nouns": Tables(
        ["N;NOM;SG", "N;NOM;PL", "N;ACC;SG", "N;NOM;SG;PSS1S"],
        ["noun", "noun, my"],
        ("nominative", "accusative"),
        ("singular", "plural"),
    ),
    "verbs": Tables(
        ["V;IND;PRS;1;SG", "V;IND;PST;1;SG", "V;NFIN"],
        ["verb", "verb, indicative"],
        ("non-finite",),
        ("",),
    ),
    "a participle is no verb besides": Tables(
        ["V.PTCP;PST", "V.PTCP;PRS"], ["participle"], ("present", "past"), ("",)
    ),
    "two tags of the same name are two rows": Tables(
        ["N;INS;SG", "N;INST;SG"], ["noun"], ("instrumental", "instrumental"), ("singular",)
    ),
    "layered tags of nouns, as of SIGMORPHON 2023": Tables(
        ["N;NOM(SG)", "N;NOM(PL)", "N;ACC(SG)"],
        ["noun"],
        ("nominative", "accusative"),
        ("singular", "plural"),
    ),
    "layered tags of subjects": Tables(
        ["V;PRS;NOM(1,SG)", "V;PST;NOM(1,SG)", "V;PST;NOM(2,PL)"],
        ["verb"],
        ("singular first", "plural second"),
        ("present", "past"),
    ),
    "layered tags of objects": Tables(
        ["V;PST;ACC(2,SG);NOM(1,SG)", "V;PST;NOM(1,SG);ACC(3,PL)"],
        ["verb, accusative (second singular)", "verb, accusative (third plural)"],
        ("singular first",),
        ("past",),
    ),
    "layered tags of possessors": Tables(
        ["N;SG;PSS(3,SG)"], ["noun, possessor (third singular)"], ("",), ("singular",)
    ),
    "no cell takes the place of another one": Tables(
        ["N;NOM(SG)", "N;NOM;SG"], ["noun", "noun, N;NOM;SG"], ("nominative",), ("singular",)
    ),
}


@pytest.mark.parametrize("expected", ARRANGEMENTS.values(), ids=ARRANGEMENTS)
def test_rows_and_columns_are_those_of_a_grammar(expected: Tables) -> None:
    tables = sections([cell_of(tags) for tags in expected.tags])
    assert [table.title for table in tables] == expected.titles
    assert (tables[0].rows, tables[0].columns) == (expected.rows, expected.columns)
    assert sum(len(table.cells) for table in tables) == len(expected.tags)


@pytest.fixture(scope="module")
def noun(everything: Inflector) -> Inflection:
    """A cell with several forms, named as that of a noun."""
    answer = everything.inflect("german", "ab", "V;PST")
    return replace(answer, question=Question("german", "ab", ("N", "NOM", "SG")))


@pytest.mark.parametrize(
    ("text", "width"),
    [
        pytest.param("Haus", 4, id="letters"),
        pytest.param("e\u0301", 1, id="accent"),
        pytest.param("\u0915\u0941", 1, id="Devanagari mark below"),
        pytest.param("\u0915\u093e", 2, id="Devanagari sign beside"),
        pytest.param("\u05d0\u05b8", 1, id="Hebrew vowel"),
        pytest.param("\u4e00", 2, id="Chinese"),
        pytest.param("a\u200db", 2, id="joiner"),
    ],
)
def test_the_columns_of_a_terminal_that_a_text_takes(text: str, width: int) -> None:
    assert terminal_width(text) == width


def test_a_table_is_folded_to_the_width_of_a_terminal(noun: Inflection) -> None:
    """Down to the width of the row's name and the longest form."""
    text = as_text([noun])
    narrowest = max(len(f"  nominative  {form.text} 100% /") for form in noun.forms)
    for width in (narrowest, max(map(len, text.splitlines())) - 1):
        lines = as_text([noun], width).splitlines()
        assert len(lines) > len(text.splitlines())
        assert max(map(len, lines)) <= width
        assert " ".join(lines).split() == text.split()


def test_a_table_that_fits_a_terminal_is_not_folded(noun: Inflection) -> None:
    text = as_text([noun])
    assert as_text([noun], max(map(len, text.splitlines()))) == text


def test_a_table_in_a_file_does_not_depend_on_the_terminal(
    paradigm_model: Path,
    cells_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "1")
    output = ("--output", tmp_path / "table")
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", *output) == 0
    assert run_paradigm(paradigm_model, cells_file, "german", "ab") == 0
    folded = capsys.readouterr().out
    assert len(folded) > len((tmp_path / "table").read_text("utf-8"))


def test_the_page_and_serve_show_the_same_forms(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(paradigm_model, folder)
    shutil.copy(cells_file, folder)
    write_list(folder)
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", "--format", "html") == 0
    page = capsys.readouterr().out
    answering = Answering(folder, SearchTask(SearchConfig()))
    assert answering.description()["pos"]["english"] == {"V": 1, "N": 1}
    record = answering.answer({"language": "german", "source": "ab", "pos": "V"})
    forms = [form["form"] for cell in record["sections"][0]["cells"] for form in cell["forms"]]
    assert forms
    assert all(f"<bdi>{form}</bdi>" in page for form in forms)


# --- `--least`: forms below it are not shown, but counted and named, in every format ---


@pytest.fixture(scope="module")
def left_out(everything: Inflector) -> dict[str, int]:
    """The number of forms below 0.2, by the tags of the cell."""
    counts = {}
    for tags in ("V", "V;PST"):
        answer = everything.inflect("german", "ab", tags)
        assert answer.level == "exhaustive"
        counts[tags] = sum(form.prob < 0.2 for form in answer.forms)
    assert min(counts.values()) > 0
    return counts


@pytest.fixture
def note(left_out: dict[str, int]) -> str:
    return f"{sum(left_out.values())} forms below 0.2 left out"


class Written(NamedTuple):
    """What the command wrote, and what it printed."""

    text: str
    printed: str


@pytest.fixture
def write(
    paradigm_model: Path,
    cells_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Written]:
    """Return a function that writes a paradigm in a format."""

    def write(kind: str, *least: object) -> Written:
        options = ("--format", kind, "--budget", 2000, "--output", tmp_path / "w", *least)
        assert run_paradigm(paradigm_model, cells_file, "german", "ab", *options) == 0
        captured = capsys.readouterr()
        return Written((tmp_path / "w").read_text("utf-8"), captured.out + captured.err)

    return write


LEAST = ("--least", 0.2)


def test_a_table_marks_cells_with_forms_left_out(write: Callable[..., Written], note: str) -> None:
    table, printed = write("table", *LEAST)
    assert table.rstrip().splitlines()[-1] == note
    assert f"note: {note}" in printed
    assert table.count(" ...") == 2  # one a cell
    assert "<1%" not in table


def test_a_page_marks_cells_with_forms_left_out(
    write: Callable[..., Written], note: str, left_out: dict[str, int]
) -> None:
    page, printed = write("html", *LEAST)
    assert f'<p class="muted">{note}</p>' in page
    assert page.count("</span> ...</td>") == 2
    assert "all forms of probability 0.2 or more" in page
    for count in left_out.values():
        assert f"; {count} forms below 0.2 left out" in page
    assert f"note: {note}" in printed


def test_json_counts_forms_left_out_by_cell(
    write: Callable[..., Written], left_out: dict[str, int]
) -> None:
    text, printed = write("json", *LEAST)
    content = json.loads(text)
    assert content["least"] == 0.2
    cells = [cell for section in content["sections"] for cell in section["cells"]]
    assert {cell["tags"]: cell["left_out"] for cell in cells} == left_out
    assert all(form["prob"] >= 0.2 for cell in cells for form in cell["forms"])
    assert "left out" in printed


def test_csv_counts_forms_left_out_by_cell(
    write: Callable[..., Written], left_out: dict[str, int]
) -> None:
    rows = csv.DictReader(write("csv", *LEAST).text.splitlines())
    assert {row["tags"]: int(row["left_out"]) for row in rows} == left_out


def test_an_automaton_that_left_forms_out_is_not_complete(
    write: Callable[..., Written], note: str
) -> None:
    assert write("att").printed.startswith("complete: ")
    assert f"in each cell; {note} in 2 of 2 cells\n" in write("att", *LEAST).printed


def test_a_keyman_list_names_forms_left_out(write: Callable[..., Written], note: str) -> None:
    text, printed = write("keyman", *LEAST)
    assert f"{note} in 2 of 2 cells" in text.splitlines()[-1]
    assert f"{note} in 2 of 2 cells" in printed


def test_a_table_that_is_printed_has_the_note_once(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", *LEAST) == 0
    captured = capsys.readouterr()
    assert captured.out.count("below 0.2 left out") == 1
    assert "left out" not in captured.err


def test_a_cell_may_lose_its_only_form() -> None:
    """Rounding may leave it just below 1."""
    form = Form("ab", math.log(0.999), 0.999)
    question = Question("x", "a", ("N",))
    cell = Inflection(question, (form,), WHOLE_SUPPORT, (), only=True).at_least(1)
    assert cell_text(cell) == "(none) ..."
    assert "(none) ..." in as_html([[cell]])
    assert as_csv([cell]) == "x,a,N,,,only,,1\n"


# --- warnings ---

KINDS = ("table", "csv", "json", "html", "hunspell", "keyman", "att")
LISTS = {"hunspell": "out.aff", "keyman": "out", "att": None}  # and the file of the comment


class Warned(NamedTuple):
    """A paradigm of a lemma, and the warnings of both of its cells."""

    kind: str
    warnings: list[str]
    out: str
    err: str
    folder: Path


@pytest.fixture(scope="module")
def umlaut_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose training had ä."""
    vocabularies = words((*VOCABULARIES.source.tokens[2:], "ä"), "abä")
    return write_model(tmp_path_factory.mktemp("umlaut") / "model", 4, vocabularies, end=4)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(
    params=[
        pytest.param(("ab", []), id="none"),
        pytest.param(("ac", ["unknown character c"]), id="unknown character"),
        pytest.param(
            (
                "ba\u0308",
                [
                    "unknown character U+0308",
                    "the lemma is not in Unicode's normal form NFC, in which training has ä: "
                    "normalise it",
                ],
            ),
            id="normal form",
        ),
    ]
)
def warned(
    request: pytest.FixtureRequest,
    kind: str,
    umlaut_model: Path,
    cells_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Warned:
    lemma, texts = request.param
    output = ("--format", kind, "--output", tmp_path / "out", "--budget", 1000)
    assert run_paradigm(umlaut_model, cells_file, "german", lemma, *output) == 0
    warnings = [f"warning: {lemma}: {text} (2 of 2 cells)" for text in texts]
    return Warned(kind, warnings, *capsys.readouterr(), tmp_path)


def test_a_lemma_that_the_model_misreads_is_warned_of_in_every_format(warned: Warned) -> None:
    assert warned.err.splitlines() == warned.warnings


@pytest.mark.parametrize("kind", LISTS, indirect=True)
def test_a_list_with_warnings_is_not_complete(warned: Warned) -> None:
    """One form is empty, which is no word of Hunspell's and Keyman's lists."""
    assert ("there are warnings in 2 of 2 cells" in warned.out) == bool(warned.warnings)
    is_complete = warned.kind == "att" and not warned.warnings
    assert warned.out.startswith("complete: ") == is_complete


@pytest.mark.parametrize("kind", ["hunspell", "keyman"], indirect=True)
def test_a_list_has_a_comment_that_says_how_complete_it_is(warned: Warned) -> None:
    assert warned.out in (warned.folder / LISTS[warned.kind]).read_text("utf-8")


def cell_with_warnings(lemma: str, *warnings: str) -> Inflection:
    """Return a cell without forms."""
    return Inflection(Question("x", lemma, ("N",)), (), WHOLE_SUPPORT, warnings, only=False)


def test_five_warnings_are_named_and_the_others_counted() -> None:
    counts = WarningCounts()
    for number in range(9):
        counts.add(cell_with_warnings(f"w{number}", "a", f"b{number}"))
    counts.add(cell_with_warnings("w"))
    named = [f"w{number}: b{number} (1 of 10 cells)" for number in range(4)]
    assert counts.lines() == ["w0: a (9 of 10 cells)", *named, "others (5 of 10 cells)"]


def test_cells_with_warnings_are_counted() -> None:
    counts = WarningCounts()
    for warnings in (["a", "b"], [], ["a"]):
        counts.add(cell_with_warnings("w", *warnings))
    assert (counts.cells, counts.with_warnings) == (3, 2)


def test_five_warnings_are_named_if_a_cell_has_several_new_ones() -> None:
    counts = WarningCounts()
    counts.add(cell_with_warnings("v", "a", "b", "c", "d"))
    counts.add(cell_with_warnings("w", "e", "f", "g"))
    first = [f"v: {warning} (1 of 2 cells)" for warning in "abcd"]
    assert counts.lines() == [*first, "w: e (1 of 2 cells)", "others (1 of 2 cells)"]


# --- languages, and errors ---


def test_a_language_may_be_named_by_its_code(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for language in ("german", "deu"):
        arguments = (language, "ab", "--pos", "V", "--format", "csv")
        assert run_paradigm(paradigm_model, cells_file, *arguments) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_a_language_without_tags_has_no_paradigm_but_a_command_that_inflects(
    tmp_path: Path,
) -> None:
    model = write_model(tmp_path / "model", 4, words(("lang=ady", "a"), "a"), end=4)
    error = refusal(paradigm.main, ["ady", "a", "--model", model])
    assert "training data for ady has no tags" in error
    command = shlex.split(error[error.index("onmt-entmax inflect") : error.index(" prints")])
    assert command[2:] == ["--model", str(model), "ady", "a", ""]
    assert exit_status(inflect.main, command[2:]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["english", "ab"], "--pos: english has N (1 cell), V (1 cell); choose one"),
        (["english", "ab", "--pos", "X"], "--pos: english has N (1 cell), V (1 cell); choose one"),
        (["dutch", "ab"], "no cells of the language 'dutch' are known"),
        (["German", "ab"], "no cells of the language 'German' are known; did you mean 'german'?"),
        (["german"], "name one lemma, or a file of them with --lemmas"),
        (["german", "ab", "--format", "att"], "--format att needs --output, a file"),
        (
            ["german", "a\tb", "--pos", "V", "--format", "keyman", "--output", "o"],
            "'a\\tb': a tab or line end, which a column cannot have",
        ),
        (
            ["german", "ab", "--format", "hunspell", "--output", "/dev/stdout"],
            "--output /dev/stdout: --format hunspell writes two files, OUTPUT.dic and OUTPUT.aff; "
            "name a file",
        ),
    ],
)
def test_mistakes_are_one_line(
    paradigm_model: Path,
    cells_file: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert run_paradigm(paradigm_model, cells_file, *arguments) == 2
    assert capsys.readouterr().err == f"paradigm.py: error: {message}\n"
