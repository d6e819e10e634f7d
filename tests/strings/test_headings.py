"""Headings of tables: names of columns in a first row, which are told from words."""

import pytest

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import rows_of
from onmt_entmax.strings.task import StringTask

INFLECTED = ["draw\tV;PST\tdrew", "go\tV;PST\twent", "walk\tV;PRS\twalks"]
FORMS = ["take\ttook\tV;PST", "NATO\tNATO\tN", "go\twent\tV;PST"]
PHONES = ["ploaie\tp lʷ a j e", "abil\ta b i l", "an\ta n"]


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        ("lemma\tfeatures\tinflected", ("source", "tags", "target")),
        ("Word\tMSD\tForm", ("source", "tags", "target")),
        ("Word\tFeature\tForms", ("source", "tags", "target")),
        ("grapheme\tphonemes\tcount", ("source", "target", "-")),
        ("Language\tLemma\tForm", ("language", "source", "target")),
    ],
    ids=["small letters", "capitals, MSD", "one name in the plural", "a count", "a language"],
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
    ids=["each once", "Word is a source", "Word beside Lemma is a target", "the first tags"],
)
def test_if_several_names_fit_a_column_the_surest_counts(
    heading: str, row: str, columns: tuple[str, ...]
) -> None:
    assert guess_layout([heading, row], "x").columns == columns


tables_with_heading = pytest.mark.parametrize(
    ("heading", "rows"),
    [
        pytest.param("lemma\tinflected\tfeatures", FORMS, id="known names"),
        pytest.param("Word\tInflected\tFeatures", FORMS[:1], id="known names, a single row"),
        pytest.param("Wort\tForm\tMerkmale", FORMS, id="German"),
        pytest.param("Слово\tФорма\tПризнаки", FORMS, id="Russian"),
        pytest.param(
            "lemme\tforme\ttraits morphologiques",
            [row.lower() for row in FORMS[::2]],
            id="French, tags in small letters",
        ),
        pytest.param(
            "Wort\tForm\tMerkmale",
            ["take\ttook\tpos=V,tense=PST", "a\ta\tpos=N"],
            id="German, tags with names",
        ),
        pytest.param("WORT\tFORM\tMERKMALE", FORMS[::2], id="all in capitals"),
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
    "columns", [(), ("source", "target", "tags")], ids=["guessed columns", "named columns"]
)


@tables_with_heading
@named_or_not
def test_a_heading_is_recognised(heading: str, rows: list[str], columns: tuple[str, ...]) -> None:
    layout = guess_layout([heading, *rows], "x", columns)
    assert layout.columns == ("source", "target", "tags")
    assert layout.heading == tuple(heading.split("\t"))


@tables_with_heading
@named_or_not
def test_a_heading_is_no_row(heading: str, rows: list[str], columns: tuple[str, ...]) -> None:
    layout = guess_layout([heading, *rows], "x", columns)
    read = rows_of([heading, *rows], layout, StringTask(layout.columns))
    assert [row.number for row in read] == [*range(2, len(rows) + 2)]


@pytest.mark.parametrize("heading", ["lemma", "Word", "base form", "base_form"])
def test_sources_alone_may_have_a_heading(heading: str) -> None:
    assert guess_layout([heading, "take", "go"], "x", ["source"]).heading == (heading,)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(["take\ttook\tpast"], id="a single row"),
        pytest.param(
            ["take\ttook\tpast", "a\ta\tplural"], id="the tag is a word, as in the row below"
        ),
        pytest.param(["take\ttook\tADV", *FORMS], id="the tag is in capitals"),
        pytest.param(["NATO\tNATO\tABBR", *FORMS], id="all is in capitals, as in a row below"),
        pytest.param(
            ["NATO\tNATO\tN", "go\tgoes\tN"], id="all is in capitals, and the tag is of another row"
        ),
        pytest.param(
            ["form\tforms\tN;PL", *FORMS],
            id="the source is the word form, and the row has two tags",
        ),
        pytest.param(
            ["word\twords\tN", *FORMS], id="the source is the word word, and the tag is in capitals"
        ),
        pytest.param(
            ["Tag\tTage\tN", "a\tb\tN;PL"],
            id="the source is the word Tag, and the tag is of another row",
        ),
        pytest.param(
            ["тат\tтат\tADJ", "ам\tамась\tN;INS"], id="Cyrillic, and the tag is in capitals"
        ),
        pytest.param(
            ["word\tw ɜː d", *PHONES], id="the source is the word word, and the target is phones"
        ),
        pytest.param(["word\tform"], id="a single row of two names"),
    ],
)
def test_a_first_row_that_does_not_name_the_given_columns_is_no_heading(rows: list[str]) -> None:
    columns = ["source", "target", "tags"][: len(rows[0].split("\t"))]
    assert guess_layout(rows, "x", columns).heading == ()


def test_a_heading_may_stand_below_a_blank_line() -> None:
    lines = ["", "lemma,form,tags", ",,", "take,took,V;PST"]
    layout = guess_layout(lines, "x")
    assert [row.number for row in rows_of(lines, layout, StringTask(layout.columns))] == [4]


def test_a_heading_of_named_columns_may_name_one_that_is_left_out() -> None:
    lines = ["word\tcount\tform", "a\t1\tb"]
    layout = guess_layout(lines, "x", ["source", "-", "target"])
    assert [
        row.number for row in rows_of(lines, layout, StringTask(("source", "tags", "target")))
    ] == [2]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            ["word\tform\tN;SG", "form\tforms\tN;PL"],
            id="the only heading word in its column is unsure",
        ),
        pytest.param(["form\tN;PL\tforms", "form\tN;SG\tform"], id="the word stands below, too"),
        pytest.param(["base\tinput", "walk\twalks"], id="both name the source"),
        pytest.param(["source\tt a", "word\tw o"], id="the target is not named"),
    ],
)
def test_a_first_row_that_may_be_words_of_the_table_is_no_heading(lines: list[str]) -> None:
    layout = guess_layout(lines, "x")
    assert layout.heading == ()
