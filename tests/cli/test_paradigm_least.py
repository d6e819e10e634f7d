"""`onmt-entmax paradigm --least`: forms below it are counted and named in every format."""

import csv
import json
import re
from pathlib import Path

import pytest

from onmt_entmax.inflector import Inflector
from tests.cli.paradigms import Writer, run_paradigm

LEAST = 0.2  # probability of a form that is shown
OPTION = ("--least", LEAST)


@pytest.fixture(scope="module")
def left_out(paradigm_model: Path) -> dict[str, int]:
    """The number of forms below `LEAST` in each cell of the German verb ab, by its tags."""
    inflector = Inflector([paradigm_model], n_best=0)
    answers = {tags: inflector.inflect("german", "ab", tags) for tags in ("V", "V;PST")}
    assert all(answer.level == "exhaustive" for answer in answers.values())
    counts = {
        tags: sum(form.prob < LEAST for form in answer.forms) for tags, answer in answers.items()
    }
    assert min(counts.values()) > 0
    return counts


@pytest.fixture(scope="module")
def note(left_out: dict[str, int]) -> str:
    """The note on both cells together."""
    return f"{sum(left_out.values())} forms below {LEAST} left out"


@pytest.fixture(scope="module")
def writer(
    paradigm_model: Path, cells_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Writer:
    """Writes the paradigm of this verb."""
    return Writer(paradigm_model, cells_file, tmp_path_factory.mktemp("paradigm"), "ab")


@pytest.mark.parametrize("kind", ["table", "html", "json"])
def test_a_file_without_all_forms_is_noted(writer: Writer, note: str, kind: str) -> None:
    assert f"note: {note}" in writer.write(kind, *OPTION).errors


def test_a_table_ends_with_the_number_of_forms_left_out(writer: Writer, note: str) -> None:
    assert writer.write("table", *OPTION).lines()[-1] == note


def test_a_table_marks_cells_with_forms_left_out(writer: Writer) -> None:
    assert writer.write("table", *OPTION).text.count(" ...") == 2  # one a cell


def test_a_table_has_no_form_left_out(writer: Writer) -> None:
    """Some of these forms have less than 1 %."""
    assert "<1%" in writer.write("table").text
    assert "<1%" not in writer.write("table", *OPTION).text


def test_a_page_marks_cells_with_forms_left_out(writer: Writer) -> None:
    text = writer.write("html", *OPTION).text
    assert text.count("</span> ...</td>") == 2  # one a cell


def test_a_page_says_which_forms_are_left_out(writer: Writer, note: str) -> None:
    text = writer.write("html", *OPTION).text
    assert f'<p class="muted">{note}</p>' in text
    assert f"all forms of probability {LEAST} or more" in text


def test_a_page_counts_forms_left_out_by_cell(writer: Writer, left_out: dict[str, int]) -> None:
    text = writer.write("html", *OPTION).text
    counts = re.findall(rf"; (\d+) forms below {LEAST} left out", text)
    assert sorted(map(int, counts)) == sorted(left_out.values())


def test_json_counts_forms_left_out_by_cell(writer: Writer, left_out: dict[str, int]) -> None:
    content = json.loads(writer.write("json", *OPTION).text)
    assert content["least"] == LEAST
    cells = [cell for section in content["sections"] for cell in section["cells"]]
    assert {cell["tags"]: cell["left_out"] for cell in cells} == left_out


def test_json_has_no_form_below_the_least_probability(writer: Writer) -> None:
    content = json.loads(writer.write("json", *OPTION).text)
    cells = [cell for section in content["sections"] for cell in section["cells"]]
    probabilities = [form["prob"] for cell in cells for form in cell["forms"]]
    assert min(probabilities) >= LEAST


def test_csv_counts_forms_left_out_by_cell(writer: Writer, left_out: dict[str, int]) -> None:
    rows = csv.DictReader(writer.write("csv", *OPTION).lines())
    assert {row["tags"]: int(row["left_out"]) for row in rows} == left_out


def test_an_automaton_that_left_forms_out_is_not_complete(writer: Writer, note: str) -> None:
    assert writer.write("att").printed.startswith("complete: ")
    printed = writer.write("att", *OPTION).printed
    assert printed.startswith("incomplete: mass at least 0.")
    assert f"in each cell; {note} in 2 of 2 cells\n" in printed


def test_a_keyman_list_names_forms_left_out(writer: Writer, note: str) -> None:
    written = writer.write("keyman", *OPTION)
    assert f"{note} in 2 of 2 cells" in written.lines()[-1]
    assert f"{note} in 2 of 2 cells" in written.printed


def test_a_table_that_is_printed_has_the_note_once(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", *OPTION) == 0
    captured = capsys.readouterr()
    assert captured.out.count(f"below {LEAST} left out") == 1
    assert "left out" not in captured.err
