"""Layouts, rows and languages of tables."""

import csv
import io
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.guessing import guess_layout, guess_separator, guess_tag_separator
from onmt_entmax.strings.languages import language_of_file
from onmt_entmax.strings.tables import BadRow, Layout, Row, TableError, rows_of
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.strings.units import Unit

INFLECTED = ["draw\tV;PST\tdrew", "go\tV;PST\twent", "walk\tV;PRS\twalks"]
PHONES = ["ploaie\tp lʷ a j e", "abil\ta b i l", "an\ta n"]
TASK = StringTask(("source", "tags", "target"))
PRONUNCIATION = StringTask(target=Unit.between(" "))
CELL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
LAYERS = st.sampled_from(["V", "PST", "NOM(3,SG)", "NOM(PL;PSS(1,PL))"])
TAGS = st.lists(LAYERS, min_size=1).map(tuple)
QUERIES = st.builds(Query, CELL.filter(str.strip), TAGS, st.just(""))


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (INFLECTED, ("source", "tags", "target")),
        (["draw\tdrew\tV;PST"] * 2, ("source", "target", "tags")),
        (["draw\tdrew\tpos=V,tense=PST"] * 2, ("source", "target", "tags")),
        (PHONES, ("source", "target")),
    ],
)
def test_columns_are_guessed(lines: list[str], columns: tuple[str, ...]) -> None:
    layout = guess_layout(lines, "x")
    assert layout.columns == columns
    assert "guessed" in str(layout)


@pytest.mark.parametrize("lines", [["read\treads\t17"], ["a\tb\tc\td"]])
def test_unclear_columns_are_refused(lines: list[str]) -> None:
    with pytest.raises(TableError, match=r"x: unclear .* --columns"):
        guess_layout(lines, "x")


def test_usual_columns_are_those_of_an_unclear_table() -> None:
    usual = ("source", "target", "tags")
    layout = guess_layout(["take\ttook\tpast", "a\ta\tplural"], "x", usual=usual)
    assert (layout.columns, layout.guessed) == (usual, True)


def test_a_line_without_columns_is_no_table() -> None:
    with pytest.raises(TableError, match="x: no tabs, nor commas, divide columns, as in 'a b'"):
        guess_layout(["a b"], "x")


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        ("lemma\tfeatures\tinflected", ("source", "tags", "target")),
        ("Word\tMSD\tForm", ("source", "tags", "target")),
        ("Word\tFeature\tForms", ("source", "tags", "target")),
        ("grapheme\tphonemes\tcount", ("source", "target", "-")),
        ("Language\tLemma\tForm", ("language", "source", "target")),
    ],
)
def test_a_heading_names_the_columns(heading: str, columns: tuple[str, ...]) -> None:
    layout = guess_layout([heading, *INFLECTED], "x")
    assert layout.columns == columns
    assert layout.heading == tuple(heading.split("\t"))
    assert "left out" in str(layout)


@pytest.mark.parametrize(
    ("heading", "row", "columns"),
    [
        ("MSD,Inflected,Lemma", "V;PST,took,take", ("tags", "target", "source")),
        ("Inflected_form,Word,Features", "took,take,V;PST", ("target", "source", "tags")),
        ("Word,Lemma,Note,Tags", "took,take,x,V;PST", ("target", "source", "-", "tags")),
        ("lemma,form,tags,features", "take,took,V;PST,y", ("source", "target", "tags", "-")),
    ],
)
def test_of_several_names_the_surest_counts(
    heading: str, row: str, columns: tuple[str, ...]
) -> None:
    assert guess_layout([heading, row], "x").columns == columns


FORMS = ["take\ttook\tV;PST", "NATO\tNATO\tN", "go\twent\tV;PST"]


@pytest.mark.parametrize(
    ("heading", "rows"),
    [
        ("lemma\tinflected\tfeatures", FORMS),
        ("Word\tInflected\tFeatures", FORMS[:1]),
        ("Wort\tForm\tMerkmale", FORMS),
        ("Слово\tФорма\tПризнаки", FORMS),
        ("lemme\tforme\ttraits morphologiques", [row.lower() for row in FORMS[::2]]),
        ("Wort\tForm\tMerkmale", ["take\ttook\tpos=V,tense=PST", "a\ta\tpos=N"]),
        ("WORT\tFORM\tMERKMALE", FORMS[::2]),
        ("a\tb\tMSD", FORMS),
        ("word\tword form\ttag", ["take\ttook\tpast", "a\ta\tplural"]),
        ("lemma\tform\ttags", ["form\tform\tN;SG", "lemma\tlemmas\tN;PL"]),
    ],
)
@pytest.mark.parametrize("columns", [(), ("source", "target", "tags")])
def test_a_heading_is_no_row(heading: str, rows: list[str], columns: tuple[str, ...]) -> None:
    layout = guess_layout([heading, *rows], "x", columns)
    assert layout.columns == ("source", "target", "tags")
    assert layout.heading == tuple(heading.split("\t"))
    read = rows_of([heading, *rows], layout, StringTask(layout.columns))
    assert [row.number for row in read] == [*range(2, len(rows) + 2)]


@pytest.mark.parametrize(
    "rows",
    [
        ["take\ttook\tpast"],  # a single row
        ["take\ttook\tpast", "a\ta\tplural"],  # tags are words below too
        ["take\ttook\tADV", *FORMS],
        ["NATO\tNATO\tABBR", *FORMS],
        ["NATO\tNATO\tN", "go\tgoes\tN"],
        ["form\tforms\tN;PL", *FORMS],
        ["word\twords\tN", *FORMS],
        ["Tag\tTage\tN", "a\tb\tN;PL"],
        ["тат\tтат\tADJ", "ам\tамась\tN;INS"],
        ["word\tw ɜː d", *PHONES],
        ["word\tform"],
    ],
)
def test_a_first_row_is_no_heading(rows: list[str]) -> None:
    columns = ["source", "target", "tags"][: len(rows[0].split("\t"))]
    assert guess_layout(rows, "x", columns).heading == ()


def test_a_heading_may_stand_below_a_blank_line() -> None:
    lines = ["", "lemma,form,tags", ",,", "take,took,V;PST"]
    layout = guess_layout(lines, "x")
    assert [row.number for row in rows_of(lines, layout, StringTask(layout.columns))] == [4]


@given(
    st.lists(QUERIES, min_size=1),
    st.sampled_from([*permutations(("source", "target", "tags"))]),
    st.booleans(),
)
def test_a_table_comes_back(queries: list[Query], columns: tuple[str, ...], comma: bool) -> None:
    """In any order of columns, from a CSV file as Python writes it and from tabs."""
    content = []
    for query in queries:
        cells = {"source": query.source, "target": f"{query.source}x", "tags": ";".join(query.tags)}
        content.append([cells[column] for column in columns])
    file = io.StringIO()
    csv.writer(file).writerows(content)
    lines = file.getvalue().splitlines() if comma else ["\t".join(cells) for cells in content]
    layout = Layout(columns, "," if comma else "\t")
    read = list(rows_of(lines, layout, StringTask(columns)))
    assert read == [
        Row(number, query, f"{query.source}x", tuple(cells))
        for number, (query, cells) in enumerate(zip(queries, content, strict=True), 1)
    ]


def test_a_heading_below_named_columns_is_no_row() -> None:
    layout = guess_layout(["word\tcount\tform", "a\t1\tb"], "x", ["source", "-", "target"])
    assert [row.number for row in rows_of(["word\tcount\tform", "a\t1\tb"], layout, TASK)] == [2]


@pytest.mark.parametrize(
    "lines",
    [
        ["word\tform\tN;SG", "form\tforms\tN;PL"],  # the only heading word in its column is unsure
        ["form\tN;PL\tforms", "form\tN;SG\tform"],
        ["base\tinput", "walk\twalks"],
        ["source\tt a", "word\tw o"],
    ],
)
def test_a_row_of_words_that_name_columns_may_be_a_row(lines: list[str]) -> None:
    layout = guess_layout(lines, "x")
    assert layout.heading == ()


def rows(lines: list[str], task: StringTask = TASK, needs: bool = True) -> list[Row | BadRow]:
    layout = guess_layout(lines, "x", task.columns)
    return list(rows_of(lines, layout, task, needs=needs))


def test_rows_have_source_tags_and_target() -> None:
    first = rows(INFLECTED)[0]
    assert first == Row(1, Query("draw", ("V", "PST")), "drew", ("draw", "V;PST", "drew"))


def test_a_column_has_the_language() -> None:
    task = StringTask(("language", "source", "target"))
    (row,) = rows(["deu\ta\tb"], task)
    assert isinstance(row, Row)
    assert row.query.language == "deu"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("draw\tdrew", "expected 3 columns, source, tags, target; found 2"),
        ("\tV\tdrew", "source is empty"),
        ("draw\tV;;PST\tdrew", "tags has an empty tag: 'V;;PST'"),
        ("draw\tV\t", "target is empty"),
    ],
)
def test_a_bad_row_says_why(line: str, reason: str) -> None:
    assert rows([*INFLECTED, line])[-1] == BadRow(4, reason, line)


def test_a_target_with_an_empty_symbol_is_bad() -> None:
    bad = rows(["an\ta  n"], PRONUNCIATION)[0]
    assert isinstance(bad, BadRow)
    assert bad.reason == "target has an empty symbol: ' ' at an end, or twice in a row"


def test_a_target_may_be_missing_when_it_is_asked_for() -> None:
    assert isinstance(rows(["draw\tV\t"], needs=False)[0], Row)


def test_commas_divide_a_table_without_tabs() -> None:
    layout = guess_layout(['"a,b","c ""d"""', "e,f"], "x")
    line = '"a,b","c ""d"""'
    assert layout.cells(line) == ("a,b", 'c "d"')
    assert layout.text(layout.cells(line)) == line


@pytest.mark.parametrize("columns", [["an\t", "ab\t"], ["an", "ab"], ["an\ta n", "ab\ta b"]])
def test_a_table_for_a_model_may_lack_the_target(columns: list[str]) -> None:
    layout = guess_layout(columns, "x", task=PRONUNCIATION)
    assert layout.columns[0] == "source"


def test_a_table_for_a_model_has_its_other_columns() -> None:
    with pytest.raises(TableError, match="x: 1 column, not 3"):
        guess_layout(["draw"], "x", task=TASK)


def test_covered_rows_keep_the_tags() -> None:
    layout = guess_layout(["draw\tV;PST"], "x", task=TASK)
    assert layout.columns == ("source", "tags")


@pytest.mark.parametrize(
    ("texts", "separator"),
    [
        (["p lʷ a j e", "a b"], " "),
        (["kitabı", "evi", "ad hoc"], ""),
        (["Aa machen", "in die Hand nehmen"], ""),
        ([], ""),
    ],
)
def test_symbols_between_spaces_are_recognised(texts: list[str], separator: str) -> None:
    assert guess_separator(texts) == separator


def test_tags_between_commas_are_recognised() -> None:
    assert guess_tag_separator(["pos=V,tense=PST"]) == ","
    assert guess_tag_separator(["V;PST"]) == ";"


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("heb.trn", "heb"),
        ("heb_unvoc.trn", "heb_unvoc"),
        ("vie_hanoi_train.tsv", "vie_hanoi"),
        ("vie_hanoi_test.covered.tsv", "vie_hanoi"),
        ("classical-syriac-train-low", "classical-syriac"),
        ("deu.covered.tst", "deu"),
        ("english-task1-dev", "english"),
        ("english-covered-test", "english"),
        ("train.tsv", ""),
        ("ket_small.train", "ket"),
        ("ady.train2.tsv", "ady"),
        ("low-german-train-medium", "low-german"),
        ("mine.csv", "mine"),
    ],
)
def test_the_name_of_a_file_says_its_language(name: str, language: str) -> None:
    assert language_of_file(name) == language
