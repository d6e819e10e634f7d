"""Headings in any language: rows of names, which are recognised by the rows below them."""

import pytest

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import Layout, Row, rows_of
from onmt_entmax.strings.task import StringTask

COLUMNS = ("source", "target", "tags")
# `NATO`: a heading is recognised although words of a row are in capitals.
FORMS = ["take\ttook\tV;PST", "NATO\tNATO\tN", "go\twent\tV;PST"]

tables_with_heading = pytest.mark.parametrize(
    ("heading", "rows"),
    [
        pytest.param("lemma\tinflected\tfeatures", FORMS, id="known names"),
        pytest.param(
            "Word\tInflected\tFeatures", ["take\ttook\tV;PST"], id="known names, a single row"
        ),
        pytest.param("Wort\tForm\tMerkmale", FORMS, id="German"),
        pytest.param("Слово\tФорма\tПризнаки", FORMS, id="Russian"),
        pytest.param(
            "lemme\tforme\ttraits morphologiques",
            ["take\ttook\tv;pst", "go\twent\tv;pst"],
            id="French, tags in small letters",
        ),
        pytest.param(
            "Wort\tForm\tMerkmale",
            ["take\ttook\tpos=V,tense=PST", "a\ta\tpos=N"],
            id="German, tags with names",
        ),
        pytest.param(
            "WORT\tFORM\tMERKMALE",
            ["take\ttook\tV;PST", "go\twent\tV;PST"],
            id="in capitals, as no word below",
        ),
        pytest.param("a\tb\tMSD", FORMS, id="one known name"),
        pytest.param(
            "word\tword form\ttag", ["take\ttook\tpast", "a\ta\tplural"], id="tags are words"
        ),
        pytest.param(
            "lemma\tform\ttags",
            ["form\tform\tN;SG", "lemma\tlemmas\tN;PL"],
            id="names that are words below",
        ),
    ],
)
named_or_not = pytest.mark.parametrize(
    "columns", [(), COLUMNS], ids=["guessed columns", "named columns"]
)


def read(lines: list[str], layout: Layout) -> list[tuple[int, str, str]]:
    """Return the line number, source and target of each row, all of which can be read."""
    rows = []
    for row in rows_of(lines, layout, StringTask(layout.columns)):
        assert isinstance(row, Row), row
        rows.append((row.number, row.query.source, row.target))
    return rows


@tables_with_heading
@named_or_not
def test_a_heading_is_recognised(heading: str, rows: list[str], columns: tuple[str, ...]) -> None:
    layout = guess_layout([heading, *rows], "x", columns)
    assert layout.heading == tuple(heading.split("\t"))


@tables_with_heading
def test_the_columns_below_a_heading_are_guessed(heading: str, rows: list[str]) -> None:
    assert guess_layout([heading, *rows], "x").columns == COLUMNS


@tables_with_heading
@named_or_not
def test_a_heading_is_not_read_as_a_row(
    heading: str, rows: list[str], columns: tuple[str, ...]
) -> None:
    lines = [heading, *rows]
    sources_and_targets = [row.split("\t")[:2] for row in rows]
    expected = [(number, *words) for number, words in enumerate(sources_and_targets, 2)]
    assert read(lines, guess_layout(lines, "x", columns)) == expected


def test_a_heading_may_stand_below_a_blank_line() -> None:
    lines = ["", "lemma,form,tags", ",,", "take,took,V;PST"]
    assert read(lines, guess_layout(lines, "x")) == [(4, "take", "took")]


def test_a_heading_may_name_a_column_that_is_left_out() -> None:
    lines = ["word\tcount\tform", "a\t1\tb"]
    layout = guess_layout(lines, "x", ["source", "-", "target"])
    assert read(lines, layout) == [(2, "a", "b")]


@pytest.mark.parametrize("heading", ["lemma", "Word", "base form", "base_form"])
def test_sources_alone_may_have_a_heading(heading: str) -> None:
    assert guess_layout([heading, "take", "go"], "x", ["source"]).heading == (heading,)
