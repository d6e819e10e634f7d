"""Headings without usual names, which are recognised because all tables begin with them."""

import pytest

from onmt_entmax.strings.shared_headings import shared_heading
from onmt_entmax.strings.tables import Layout

LAYOUT = Layout(("source", "target"))
TRAINING = ["Wort\tAussprache", "Haus\thaʊs", "Maus\tmaʊs"]
OTHER = ["Wort\tAussprache", "Laus\tlaʊs", "Tau\ttaʊ"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(OTHER, id="the same columns"),
        pytest.param(
            ["Aussprache,Wort", "laʊs,Laus", "taʊ,Tau"], id="another order, and commas between them"
        ),
        pytest.param(["Wort", "Laus", "Tau"], id="without targets"),
    ],
)
def test_a_first_row_with_which_the_other_table_begins_is_a_heading(other: list[str]) -> None:
    assert shared_heading(LAYOUT, TRAINING, [other]) == ("Wort", "Aussprache")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(["Laus\tlaʊs", "Tau\ttaʊ", "Bau\tbaʊ"], id="another first row"),
        pytest.param(["Wort\tAussprache", "Laus\tlaʊs"], id="only one row below"),
        pytest.param(
            ["Wort\tAussprache", "Laus\tlaʊs", "Maus\tmaʊs"], id="a row of the first table"
        ),
        pytest.param(
            ["Aussprache\tWort", "haʊs\tHaus", "maʊs\tMaus"], id="its rows with exchanged columns"
        ),
        pytest.param(["Wort", "Haus", "Maus"], id="its sources"),
    ],
)
def test_a_table_that_may_share_an_ordinary_row_shows_no_heading(other: list[str]) -> None:
    assert shared_heading(LAYOUT, TRAINING, [other]) == ()


def test_all_other_tables_must_begin_with_the_heading() -> None:
    without_heading = ["Laus\tlaʊs", "raus\traʊs", "Bau\tbaʊ"]
    assert shared_heading(LAYOUT, TRAINING, [OTHER, without_heading]) == ()


def test_a_table_without_targets_shares_no_heading() -> None:
    """The name of its only column could as well be a word of the language."""
    other = ["Wort", "Tau", "Bau"]
    assert shared_heading(Layout(("source",)), ["Wort", "Laus"], [other]) == ()


def test_a_table_without_other_tables_shares_no_heading() -> None:
    assert shared_heading(LAYOUT, TRAINING, []) == ()
