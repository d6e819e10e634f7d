"""Headings for a model whose training tables had other names than the usual ones."""

import pytest

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.own_headings import own_heading
from onmt_entmax.strings.tables import Layout, TableError
from onmt_entmax.strings.task import StringTask

# --- the heading that a model records --------------------------------------------------------


@pytest.mark.parametrize(
    "heading",
    [
        pytest.param(("form", "lemma"), id="usual names of other columns"),
        pytest.param(("Wort", "Form"), id="a name that is not usual"),
        pytest.param(("lemma", "base"), id="two usual names of the source"),
    ],
)
def test_a_heading_of_which_usual_names_do_not_say_the_columns_is_recorded(
    heading: tuple[str, ...],
) -> None:
    assert own_heading(Layout(("source", "target"), heading=heading)) == heading


@pytest.mark.parametrize(
    "heading", [pytest.param(("lemma", "form"), id="usual names"), pytest.param((), id="none")]
)
def test_other_headings_are_not_recorded(heading: tuple[str, ...]) -> None:
    assert own_heading(Layout(("source", "target"), heading=heading)) == ()


# --- own names that contradict usual ones ----------------------------------------------------

# By the usual names, `form` is the target and `lemma` the source.
LEMMAS = StringTask(("source", "tags", "target"), heading=("form", "msd", "lemma"))
PAIRS = StringTask(("source", "target"), heading=("form", "lemma"))


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(
            ["form\tmsd\tlemma", "drew\tV;PST\tdraw"],
            ("source", "tags", "target"),
            id="as in training",
        ),
        pytest.param(
            ["Lemmas\tForms\tMSD", "draw\tdrew\tV;PST"],
            ("target", "source", "tags"),
            id="in another order, in the plural and capitals",
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
            id="with `target`, as `predict` writes it",
        ),
        pytest.param(["drew\tV;PST\tdraw"], ("source", "tags", "target"), id="no heading"),
    ],
)
def test_own_names_count_before_usual_ones(lines: list[str], columns: tuple[str, ...]) -> None:
    assert guess_layout(lines, "x", task=LEMMAS).columns == columns


@pytest.mark.parametrize(
    ("first", "is_heading"),
    [
        pytest.param("Wort\tLaute", True, id="the own heading"),
        pytest.param("laute\twort", True, id="in another order"),
        pytest.param("Wort\tvɔʁt", False, id="one name, in a pair of the table"),
    ],
)
def test_an_own_heading_above_columns_that_the_user_names_is_no_row(
    first: str, is_heading: bool
) -> None:
    task = StringTask(heading=("Wort", "Laute"))
    layout = guess_layout([first, "Haus\thaʊs"], "x", ("source", "target"), task=task)
    assert layout.columns == ("source", "target")
    assert layout.heading == (tuple(first.split("\t")) if is_heading else ())


@pytest.mark.parametrize(
    "heading",
    [
        pytest.param("wordform\tlemma", id="another name of the source"),
        pytest.param("wordform\theadword", id="other names of both"),
        pytest.param("lemma\ttags", id="no source"),
    ],
)
def test_usual_names_in_place_of_own_ones_are_refused(heading: str) -> None:
    """By the usual names, source and target would be exchanged."""
    message = "x: its heading is '.*', but training named 'form' for source, 'lemma' for target"
    with pytest.raises(TableError, match=message):
        guess_layout([heading, "a\tb"], "x", task=PAIRS)


@pytest.mark.parametrize("row", ["form\tforms", "Lemma\tlemmas"])
def test_a_row_with_a_single_own_name_is_not_a_heading(row: str) -> None:
    """It is a word and its plural."""
    assert guess_layout([row, "drew\tdraw"], "x", task=PAIRS).heading == ()


@pytest.mark.parametrize("name", ["form", "Forms"])
def test_the_own_name_of_the_source_is_a_heading_of_sources_alone(name: str) -> None:
    layout = guess_layout([name, "drew", "went"], "x", task=PAIRS)
    assert (layout.columns, layout.heading) == (("source",), (name,))


# --- own names that are not usual ------------------------------------------------------------

GERMAN = StringTask(("source", "tags", "target"), heading=("wort", "merkmale", "form"))


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(
            ["form\tmerkmale\twort", "ging\tV;PST\tgehen"],
            ("target", "tags", "source"),
            id="in another order",
        ),
        pytest.param(["Merkmale\tWort", "V;PST\tgehen"], ("tags", "source"), id="without targets"),
        pytest.param(
            ["wort\tzahl\tmerkmale", "gehen\t1\tV;PST"],
            ("source", "-", "tags"),
            id="with another column",
        ),
        pytest.param(
            ["form\tlemma\ttags", "ging\tgehen\tV;PST"],
            ("target", "source", "tags"),
            id="usual names instead",
        ),
        pytest.param(
            ["form\tlemma\tmerkmale", "ging\tgehen\tV;PST"],
            ("target", "source", "tags"),
            id="a usual name of the source",
        ),
        pytest.param(
            ["Grundform\tMerkmale\tForm", "gehen\tV;PST\tging"],
            ("source", "tags", "target"),
            id="a new name of the source, in the order of training",
        ),
    ],
)
def test_columns_may_have_own_names_and_usual_ones(
    lines: list[str], columns: tuple[str, ...]
) -> None:
    layout = guess_layout(lines, "x", task=GERMAN)
    assert (layout.columns, layout.heading) == (columns, tuple(lines[0].split("\t")))


def test_a_new_name_of_the_source_is_refused_in_another_order() -> None:
    with pytest.raises(TableError, match=r"its heading is 'Form \| Merkmale \| Grundform', but"):
        guess_layout(["Form\tMerkmale\tGrundform", "ging\tV;PST\tgehen"], "x", task=GERMAN)


def test_usual_names_of_all_columns_count_if_own_ones_do_not_contradict() -> None:
    """`Past` is the own name of the target."""
    task = StringTask(("source", "target", "tags"), heading=("Verb", "Past", "Tag"))
    layout = guess_layout(["lemma\tword\ttag", "go\twent\tV;PST"], "x", task=task)
    assert layout.columns == ("source", "target", "tags")


def test_a_row_whose_tags_stand_below_is_not_a_heading() -> None:
    task = StringTask(("source", "target", "tags"), heading=("wort", "form", "merkmale"))
    layout = guess_layout(["wort\tform\tN;PL", "tag\ttage\tN;PL"], "x", task=task)
    assert layout.heading == ()


# --- a name above two columns of training ----------------------------------------------------


def test_a_name_above_two_columns_names_both_in_the_order_of_training() -> None:
    task = StringTask(("source", "-", "target"), heading=("lemma", "form", "form"))
    layout = guess_layout(["lemma\tform\tform", "draw\tdraws\tdrew"], "x", task=task)
    assert layout.columns == ("source", "-", "target")


def test_a_name_above_two_columns_is_refused_in_another_order() -> None:
    task = StringTask(("source", "-", "target", "tags"), heading=("lemma", "form", "form", "tags"))
    with pytest.raises(TableError, match="but training named"):
        guess_layout(["tags\tlemma\tform\tform", "V;PST\tgo\tgoes\twent"], "x", task=task)
