"""Headings of tables for a model whose training had others than usual names above its columns."""

import pytest

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.own_headings import own_heading, shared_heading
from onmt_entmax.strings.tables import Layout, TableError
from onmt_entmax.strings.task import StringTask

# By the usual names, `form` is the target and `lemma` the source.
LEMMAS = StringTask(("source", "tags", "target"), heading=("form", "msd", "lemma"))
PAIRS = StringTask(("source", "target"), heading=("form", "lemma"))


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(
            ["form\tmsd\tlemma", "drew\tV;PST\tdraw"], ("source", "tags", "target"), id="the same"
        ),
        pytest.param(
            ["Lemmas\tForms\tMSD", "draw\tdrew\tV;PST"],
            ("target", "source", "tags"),
            id="in another order, case and number",
        ),
        pytest.param(["form\tmsd", "drew\tV;PST"], ("source", "tags"), id="without targets"),
        pytest.param(
            ["form\tcount\tmsd\tlemma", "drew\t1\tV;PST\tdraw"],
            ("source", "-", "tags", "target"),
            id="with another column",
        ),
        pytest.param(
            ["form\tfeatures\tlemma", "drew\tV;PST\tdraw"],
            ("source", "tags", "target"),
            id="with a usual name of the tags",
        ),
        pytest.param(
            ["form\tmsd\ttarget", "drew\tV;PST\tdraw"],
            ("source", "tags", "target"),
            id="as `predict` writes it",
        ),
        pytest.param(["drew\tV;PST\tdraw"], ("source", "tags", "target"), id="no heading"),
    ],
)
def test_its_names_count_before_usual_ones(lines: list[str], columns: tuple[str, ...]) -> None:
    assert guess_layout(lines, "x", task=LEMMAS).columns == columns


@pytest.mark.parametrize(
    "heading",
    [
        pytest.param("wordform\tlemma", id="another name of the source"),
        pytest.param("wordform\theadword", id="other names of both"),
        pytest.param("lemma\ttags", id="no source"),
    ],
)
def test_other_names_are_refused(heading: str) -> None:
    """By the usual names, source and target would be exchanged."""
    message = "x: its heading is '.*', but training named 'form' for source, 'lemma' for target"
    with pytest.raises(TableError, match=message):
        guess_layout([heading, "a\tb"], "x", task=PAIRS)


def test_a_name_above_two_columns_names_both_in_the_order_of_training() -> None:
    task = StringTask(("source", "-", "target"), heading=("lemma", "form", "form"))
    layout = guess_layout(["lemma\tform\tform", "draw\tdraws\tdrew"], "x", task=task)
    assert layout.columns == ("source", "-", "target")


@pytest.mark.parametrize("row", ["form\tforms", "Lemma\tlemmas"])
def test_a_row_with_one_of_its_names_is_no_heading(row: str) -> None:
    assert guess_layout([row, "drew\tdraw"], "x", task=PAIRS).heading == ()


@pytest.mark.parametrize(
    ("heading", "own"),
    [
        pytest.param(("form", "lemma"), ("form", "lemma"), id="names of other columns"),
        pytest.param(("lemma", "form"), (), id="usual names"),
        pytest.param(("Wort", "Form"), ("Wort", "Form"), id="a name that is not usual"),
        pytest.param(("lemma", "base"), ("lemma", "base"), id="two names of the source"),
        pytest.param((), (), id="no heading"),
    ],
)
def test_a_heading_is_recorded_unless_usual_names_say_its_columns(
    heading: tuple[str, ...], own: tuple[str, ...]
) -> None:
    assert own_heading(Layout(("source", "target"), heading=heading)) == own


@pytest.mark.parametrize(("first", "columns"), [("form", ("source",)), ("Forms", ("source",))])
def test_the_name_of_the_source_alone_is_a_heading(first: str, columns: tuple[str, ...]) -> None:
    layout = guess_layout([first, "drew", "went"], "x", task=PAIRS)
    assert (layout.columns, layout.heading) == (columns, (first,))


# --- names that are not usual, and contradict none ---

GERMAN = StringTask(("source", "tags", "target"), heading=("wort", "merkmale", "form"))


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        pytest.param("form\tmerkmale\twort", ("target", "tags", "source"), id="another order"),
        pytest.param("Merkmale\tWort", ("tags", "source"), id="without targets"),
        pytest.param("wort\tzahl\tmerkmale", ("source", "-", "tags"), id="with another column"),
        pytest.param("form\tlemma\ttags", ("target", "source", "tags"), id="usual names"),
        pytest.param("form\tlemma\tmerkmale", ("target", "source", "tags"), id="some usual names"),
        pytest.param("Grundform\tMerkmale\tForm", ("source", "tags", "target"), id="a new name"),
    ],
)
def test_names_that_are_not_usual_tell_columns(heading: str, columns: tuple[str, ...]) -> None:
    below = "\t".join("V;PST" if column == "tags" else "ging" for column in columns)
    layout = guess_layout([heading, below, below], "x", task=GERMAN)
    assert layout.columns == columns
    assert layout.heading == tuple(heading.split("\t"))


def test_a_new_name_of_the_source_is_refused_where_the_order_of_others_is_new() -> None:
    with pytest.raises(TableError, match=r"its heading is 'Form \| Merkmale \| Grundform', but"):
        guess_layout(["Form\tMerkmale\tGrundform", "ging\tV;PST\tgehen"], "x", task=GERMAN)


# --- a heading without tags, which a model reads ---


def test_columns_that_a_heading_names_are_not_read_as_tags() -> None:
    task = StringTask(("source", "target", "tags"))
    assert guess_layout(["lemma\tform", "go\twent"], "x", task=task).columns == ("source", "target")


def test_a_heading_that_contradicts_the_order_of_training_must_name_the_tags() -> None:
    task = StringTask(("source", "target", "tags"))
    with pytest.raises(TableError, match=r"its heading 'form \| lemma \| x' names .*, but no tags"):
        guess_layout(["form\tlemma\tx", "went\tgo\tV;PST"], "x", task=task)


# --- a usual name above another column ---

FORM_WORT_TAGS = ["Form\tWort\tTags", "ging\tgehen\tV;PST", "sah\tsehen\tV;PST"]


@pytest.mark.parametrize("task", [None, StringTask(("source", "target", "tags"))])
def test_a_usual_name_above_another_column_is_refused(task: StringTask | None) -> None:
    """The tags tell that the first row is a heading, and `Form` names the target."""
    message = "its columns seem to be source, target, tags, but 'Form' of the heading .* the target"
    with pytest.raises(TableError, match=message):
        guess_layout(FORM_WORT_TAGS, "x", task=task)


def test_named_columns_count_before_names_above_them() -> None:
    columns = ("source", "target", "tags")
    assert guess_layout(FORM_WORT_TAGS, "x", columns).columns == columns


# --- a first row that all tables have ---

PRONUNCIATIONS = ["Wort\tAussprache", "Haus\thaʊs", "Maus\tmaʊs"]


@pytest.mark.parametrize(
    ("other", "heading"),
    [
        pytest.param(
            ["Wort\tAussprache", "Laus\tlaʊs", "Tau\ttaʊ"], ("Wort", "Aussprache"), id="equal"
        ),
        pytest.param(
            ["Aussprache,Wort", "laʊs,Laus", "taʊ,Tau"], ("Wort", "Aussprache"), id="other order"
        ),
        pytest.param(["Wort", "Laus", "Tau"], ("Wort", "Aussprache"), id="without targets"),
        pytest.param(["Wort\tAussprache", "Laus\tlaʊs", PRONUNCIATIONS[2]], (), id="common rows"),
        pytest.param(
            ["\t".join(row.split("\t")[::-1]) for row in PRONUNCIATIONS], (), id="exchanged"
        ),
        pytest.param(PRONUNCIATIONS[1:], (), id="another first row"),
        pytest.param(["Wort\tAussprache"], (), id="no second row"),
    ],
)
def test_a_first_row_of_all_tables_is_a_heading(other: list[str], heading: tuple[str, ...]) -> None:
    layout = Layout(("source", "target"))
    assert shared_heading(layout, PRONUNCIATIONS, [other, other]) == heading


def test_a_first_row_of_some_tables_is_none() -> None:
    layout = Layout(("source", "target"))
    others = [["Wort\tAussprache", "Laus\tlaʊs"], ["Laus\tlaʊs", "raus\traʊs"]]
    assert shared_heading(layout, PRONUNCIATIONS, others) == ()


# --- headings that must be read as before a model recorded its own ---


def test_usual_names_of_all_columns_count_beside_an_own_heading() -> None:
    task = StringTask(("source", "target", "tags"), heading=("Verb", "Past", "Tag"))
    layout = guess_layout(["lemma\tword\ttag", "go\twent\tV;PST"], "x", task=task)
    assert layout.columns == ("source", "target", "tags")


def test_a_name_above_two_columns_is_refused_in_another_order() -> None:
    task = StringTask(("source", "-", "target", "tags"), heading=("lemma", "form", "form", "tags"))
    with pytest.raises(TableError, match="but training named"):
        guess_layout(["tags\tlemma\tform\tform", "V;PST\tgo\tgoes\twent"], "x", task=task)


def test_a_row_whose_tags_stand_below_is_no_heading() -> None:
    task = StringTask(("source", "target", "tags"), heading=("wort", "form", "merkmale"))
    layout = guess_layout(["wort\tform\tN;PL", "tag\ttage\tN;PL"], "x", task=task)
    assert layout.heading == ()


def test_tables_without_targets_that_have_rows_of_training_share_no_heading() -> None:
    words = [row.split("\t")[0] for row in PRONUNCIATIONS]
    assert shared_heading(Layout(("source", "target")), PRONUNCIATIONS, [words]) == ()


def test_a_table_without_targets_shares_no_heading() -> None:
    assert shared_heading(Layout(("source",)), ["Wort", "Laus"], [["Wort", "Tau", "Bau"]]) == ()


def test_a_usual_name_above_a_left_out_column_contradicts_nothing() -> None:
    layout = guess_layout(["lemma\tform\tfeatures\tsource", "go\twent\tV;PST\tx"], "x")
    assert layout.columns == ("source", "target", "tags", "-")
