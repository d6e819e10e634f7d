"""Headings of tables for a model whose training had usual names above other columns."""

import pytest

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.own_headings import own_heading
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
        pytest.param(("Wort", "Form"), (), id="other names"),
        pytest.param(("lemma", "base"), (), id="of two names of the source the surer one"),
        pytest.param((), (), id="no heading"),
    ],
)
def test_a_heading_is_recorded_if_its_names_mean_other_columns(
    heading: tuple[str, ...], own: tuple[str, ...]
) -> None:
    assert own_heading(Layout(("source", "target"), heading=heading)) == own
