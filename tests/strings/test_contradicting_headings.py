"""Headings whose usual names contradict what the tags or a model say about the columns."""

import pytest

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import TableError
from onmt_entmax.strings.task import StringTask

INFLECTION = StringTask(("source", "target", "tags"))

# --- a usual name above another column -------------------------------------------------------

FORM_WORT_TAGS = ["Form\tWort\tTags", "ging\tgehen\tV;PST", "sah\tsehen\tV;PST"]


@pytest.mark.parametrize("task", [None, INFLECTION], ids=["no model", "a model"])
def test_a_usual_name_above_another_column_is_refused(task: StringTask | None) -> None:
    """The tags show that the first row is a heading, and `Form` names the target."""
    message = "its columns seem to be source, target, tags, but 'Form' of the heading .* the target"
    with pytest.raises(TableError, match=message):
        guess_layout(FORM_WORT_TAGS, "x", task=task)


def test_columns_that_the_user_names_may_contradict_the_heading() -> None:
    columns = ("source", "target", "tags")
    assert guess_layout(FORM_WORT_TAGS, "x", columns).columns == columns


def test_a_usual_name_above_a_left_out_column_contradicts_nothing() -> None:
    """`lemma` and `source` both name the source, so that the tags decide."""
    layout = guess_layout(["lemma\tform\tfeatures\tsource", "go\twent\tV;PST\tx"], "x")
    assert layout.columns == ("source", "target", "tags", "-")


# --- a heading without the tags that a model reads -------------------------------------------


def test_columns_that_a_heading_names_are_not_read_as_tags() -> None:
    layout = guess_layout(["lemma\tform", "go\twent"], "x", task=INFLECTION)
    assert layout.columns == ("source", "target")


def test_a_heading_that_contradicts_the_order_of_training_must_name_the_tags() -> None:
    with pytest.raises(TableError, match=r"its heading 'form \| lemma \| x' names .*, but no tags"):
        guess_layout(["form\tlemma\tx", "went\tgo\tV;PST"], "x", task=INFLECTION)
