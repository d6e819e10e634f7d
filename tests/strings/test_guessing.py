"""Guesses about tables: columns, headings, and separators of symbols and tags."""

import pytest

from onmt_entmax.strings.delimiters import guess_delimiter, guess_separator, guess_tag_separator
from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import TableError, rows_of
from onmt_entmax.strings.task import StringTask
from onmt_entmax.strings.units import Unit

INFLECTED = ["draw\tV;PST\tdrew", "go\tV;PST\twent", "walk\tV;PRS\twalks"]
FORMS = ["take\ttook\tV;PST", "NATO\tNATO\tN", "go\twent\tV;PST"]
PHONES = ["ploaie\tp lʷ a j e", "abil\ta b i l", "an\ta n"]
TASK = StringTask(("source", "tags", "target"))
PRONUNCIATION = StringTask(target=Unit.between(" "))


# --- columns and headings --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(INFLECTED, ("source", "tags", "target"), id="tags second"),
        pytest.param(["draw\tdrew\tV;PST"] * 2, ("source", "target", "tags"), id="tags last"),
        pytest.param(
            ["draw\tdrew\tpos=V,tense=PST"] * 2,
            ("source", "target", "tags"),
            id="tags with names",
        ),
        pytest.param(
            ["at\tata\tN|GEN|SG", "ev\tevin\tN|GEN"],
            ("source", "target", "tags"),
            id="tags between strokes",
        ),
        pytest.param(PHONES, ("source", "target"), id="two columns"),
    ],
)
def test_columns_are_guessed(lines: list[str], columns: tuple[str, ...]) -> None:
    layout = guess_layout(lines, "x")
    assert layout.columns == columns
    assert "guessed" in str(layout)


@pytest.mark.parametrize(
    "lines", [["read\treads\t17"], ["a\tb\tc\td"]], ids=["a count", "four columns"]
)
def test_unclear_columns_are_refused(lines: list[str]) -> None:
    with pytest.raises(TableError, match=r"x: unclear .* --columns"):
        guess_layout(lines, "x")


def test_usual_columns_are_those_of_an_unclear_table() -> None:
    usual = ("source", "target", "tags")
    layout = guess_layout(["take\ttook\tpast", "a\ta\tplural"], "x", usual=usual)
    assert (layout.columns, layout.guessed) == (usual, True)


def test_tags_in_the_first_column_are_no_source_of_the_usual_columns() -> None:
    lines = ["V;PST\ttake\ttook", "V;3;SG\ttake\ttakes"]
    with pytest.raises(TableError, match="unclear what its 3 columns are"):
        guess_layout(lines, "x", usual=("source", "target", "tags"))


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        pytest.param(["draw,drew,V;PST", "go,went,V;PRS"], ",", id="tags in a CSV file"),
        pytest.param(['draw;drew;"V;PST"', "go;went;V"], ";", id="a CSV file with semicolons"),
        pytest.param(["draw;drew;pos=V,t=PST", "go;went;pos=V,t=PST,n=PL"], ";", id="tags with ,"),
        pytest.param(['"draw";"drew"', '"a,b";"c,d"'], ";", id="all cells in quotes"),
        pytest.param(['"a,b";"c,d"'], ";", id="commas within quotes"),
        pytest.param(["word;ipa", "a b;p q", "c d;r s"], ";", id="words below a heading"),
        pytest.param(["lemma,form,tags", "draw,drew,V", "bad"], ",", id="a bad row, a heading"),
        pytest.param(["draw drew V;PST", "go went V;PST"], "\t", id="spaces between columns"),
        pytest.param(["draw V;PST", "go V;PST;PL"], "\t", id="tags of many widths"),
        pytest.param(["a;b", "c"], "\t", id="a source with a semicolon"),
        pytest.param(["a;b", "c;d;e"], "\t", id="sources of semicolons"),
        pytest.param(["a;b\tc", "d;e\tf"], "\t", id="tabs, too"),
    ],
)
def test_the_sign_between_columns_is_recognised(lines: list[str], delimiter: str) -> None:
    assert guess_delimiter(lines) == delimiter


def test_a_line_without_columns_is_no_table() -> None:
    with pytest.raises(TableError, match="as in 'a b'; write a tab between them"):
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
def test_of_several_names_the_surest_counts(
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
        pytest.param(["take\ttook\tpast", "a\ta\tplural"], id="tags are words below too"),
        pytest.param(["take\ttook\tADV", *FORMS], id="a tag in capitals"),
        pytest.param(["NATO\tNATO\tABBR", *FORMS], id="all in capitals, as one below"),
        pytest.param(["NATO\tNATO\tN", "go\tgoes\tN"], id="all in capitals, tag of another row"),
        pytest.param(["form\tforms\tN;PL", *FORMS], id="source form, two tags"),
        pytest.param(["word\twords\tN", *FORMS], id="source word, a tag in capitals"),
        pytest.param(["Tag\tTage\tN", "a\tb\tN;PL"], id="source tag, tag of another row"),
        pytest.param(["тат\tтат\tADJ", "ам\tамась\tN;INS"], id="Cyrillic, a tag in capitals"),
        pytest.param(["word\tw ɜː d", *PHONES], id="source word, target phones"),
        pytest.param(["word\tform"], id="a single row of two names"),
    ],
)
def test_a_first_row_is_no_heading(rows: list[str]) -> None:
    columns = ["source", "target", "tags"][: len(rows[0].split("\t"))]
    assert guess_layout(rows, "x", columns).heading == ()


def test_a_heading_may_stand_below_a_blank_line() -> None:
    lines = ["", "lemma,form,tags", ",,", "take,took,V;PST"]
    layout = guess_layout(lines, "x")
    assert [row.number for row in rows_of(lines, layout, StringTask(layout.columns))] == [4]


def test_a_heading_of_named_columns_may_name_one_that_is_left_out() -> None:
    lines = ["word\tcount\tform", "a\t1\tb"]
    layout = guess_layout(lines, "x", ["source", "-", "target"])
    assert [row.number for row in rows_of(lines, layout, TASK)] == [2]


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
def test_a_row_of_words_that_name_columns_may_be_a_row(lines: list[str]) -> None:
    layout = guess_layout(lines, "x")
    assert layout.heading == ()


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(["an\ta n\t", "ab\ta b\t"], ("source", "target", "-"), id="one"),
        pytest.param(["an\ta n\t\t"] * 2, ("source", "target", "-", "-"), id="two"),
    ],
)
def test_last_columns_without_text_are_left_out(lines: list[str], columns: tuple[str, ...]) -> None:
    assert guess_layout(lines, "x").columns == columns
    assert guess_layout(lines, "x", task=PRONUNCIATION).columns == columns


def test_a_file_whose_lines_end_with_cr_alone_is_refused() -> None:
    with pytest.raises(TableError, match="x: its lines end with CR alone"):
        guess_layout(["an\ta n\rab\ta b"], "x")


def test_a_line_without_columns_is_shown_in_place_of_a_comment() -> None:
    with pytest.raises(TableError, match="as in 'AN  AE1 N'; write a tab"):
        guess_layout([";;; a comment", "AN  AE1 N"], "x")


# --- tables for a model -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [["an\t", "ab\t"], ["an", "ab"], ["an\ta n", "ab\ta b"]],
    ids=["empty", "no column", "filled"],
)
def test_a_table_for_a_model_may_lack_the_target(lines: list[str]) -> None:
    layout = guess_layout(lines, "x", task=PRONUNCIATION)
    assert layout.columns[0] == "source"


def test_a_table_for_a_model_has_its_other_columns() -> None:
    with pytest.raises(TableError, match="x: 1 column, not 3"):
        guess_layout(["draw"], "x", task=TASK)


def test_covered_rows_keep_the_tags() -> None:
    layout = guess_layout(["draw\tV;PST"], "x", task=TASK)
    assert layout.columns == ("source", "tags")


# --- separators ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "separator"),
    [
        (["p lʷ a j e", "a b"], " "),
        (["kitabı", "evi", "ad hoc"], ""),
        (["Aa machen", "in die Hand nehmen"], ""),
        ([], ""),
    ],
    ids=["phones", "words, of which one has a space", "long symbols", "no texts"],
)
def test_symbols_between_spaces_are_recognised(texts: list[str], separator: str) -> None:
    assert guess_separator(texts) == separator


@pytest.mark.parametrize(
    ("tags", "separator"),
    [("pos=V,tense=PST", ","), ("V;PST", ";"), ("Case=Nom|Number=Sing", "|"), ("A|B;C", ";")],
)
def test_the_separator_of_tags_is_recognised(tags: str, separator: str) -> None:
    assert guess_tag_separator([tags]) == separator
