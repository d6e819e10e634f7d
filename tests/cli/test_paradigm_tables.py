"""Tables of `onmt-entmax paradigm`: rows and columns of a grammar, and the width of a terminal."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.inflector import Form, Inflection, Inflector, Question
from onmt_entmax.paradigm import as_text, sections
from onmt_entmax.paradigm.texts import terminal_width
from tests.cli.paradigms import WHOLE_SUPPORT, run_paradigm


def cell_of(tags: str) -> Inflection:
    """Return a cell of these tags with a form."""
    question = Question("german", "ab", tuple(tags.split(";")))
    return Inflection(question, (Form("ab", 0.0, 1.0),), WHOLE_SUPPORT, (), only=True)


class Tables(NamedTuple):
    """Tags of cells, and the tables that these become."""

    tags: Sequence[str]
    titles: Sequence[str]
    rows: tuple[str, ...]
    """Headings of the rows of the first table."""
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
    "layered tags of a subject that is not in the nominative, as in ergative languages": Tables(
        ["V;PST;ERG(1,SG)", "V;PST;ERG(1,SG);ABS(2,SG)"],
        ["verb", "verb, absolutive (second singular)"],
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


# --- the width of a terminal ---


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


@pytest.fixture(scope="module")
def noun(paradigm_model: Path) -> Inflection:
    """A cell with several forms, named as that of a noun."""
    answer = Inflector([paradigm_model], n_best=0).inflect("german", "ab", "V;PST")
    return replace(answer, question=Question("german", "ab", ("N", "NOM", "SG")))


@pytest.fixture(scope="module")
def table(noun: Inflection) -> str:
    """The table of the noun, as wide as it needs to be."""
    return as_text([noun])


def width_of(table: str) -> int:
    """Return the length of the longest line."""
    return max(map(len, table.splitlines()))


@pytest.fixture(params=["the narrowest", "one column too few"])
def folded_width(request: pytest.FixtureRequest, noun: Inflection, table: str) -> int:
    """A width at which the table is folded; the narrowest has the row's name and longest form."""
    if request.param == "one column too few":
        return width_of(table) - 1
    return max(len(f"  nominative  {form.text} 100% /") for form in noun.forms)


def test_a_table_is_folded_to_the_width_of_a_terminal(
    noun: Inflection, table: str, folded_width: int
) -> None:
    folded = as_text([noun], folded_width)
    assert len(folded.splitlines()) > len(table.splitlines())
    assert width_of(folded) <= folded_width


def test_a_folded_table_has_the_same_words(noun: Inflection, table: str, folded_width: int) -> None:
    assert as_text([noun], folded_width).split() == table.split()


def test_a_table_that_fits_a_terminal_is_not_folded(noun: Inflection, table: str) -> None:
    assert as_text([noun], width_of(table)) == table


def test_a_table_in_a_file_does_not_depend_on_the_terminal(
    paradigm_model: Path,
    cells_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = ("--output", tmp_path / "table")
    monkeypatch.setenv("COLUMNS", "1")
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", *output) == 0
    assert run_paradigm(paradigm_model, cells_file, "german", "ab") == 0
    folded = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "1000")
    assert run_paradigm(paradigm_model, cells_file, "german", "ab") == 0
    unfolded = capsys.readouterr().out
    assert (tmp_path / "table").read_text("utf-8") == unfolded != folded
