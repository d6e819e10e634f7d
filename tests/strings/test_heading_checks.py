"""Rows that look like headings, although they are read as rows."""

import pytest

from onmt_entmax.strings.heading_checks import likely_headings
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query, StringTask
from tests.strings.checked_rows import FORMS, INFLECTION, PHONES, PRONUNCIATION, rows_in


def test_a_heading_in_the_middle_is_named() -> None:
    rows = rows_in([*FORMS, "lemma\tform\ttags"], INFLECTION)
    assert [*likely_headings(rows, INFLECTION)] == [
        "rows that may be headings: 1 of 4, such as line 4, 'lemma', 'form', 'tags'; they are read "
        "as rows"
    ]


def test_a_first_row_without_phones_is_named() -> None:
    rows = rows_in(["Wort\tAussprache", *PHONES], PRONUNCIATION)
    assert [*likely_headings(rows, PRONUNCIATION)] == [
        "rows that may be headings: 1 of 3, such as line 1, 'Wort', 'Aussprache'; they are read as "
        "rows"
    ]


def test_a_first_row_with_one_usual_name_is_named() -> None:
    rows = rows_in(["Wort\tIPA", "Haus\thaʊs"], StringTask())
    assert [*likely_headings(rows, StringTask())] == [
        "rows that may be headings: 1 of 2, such as line 1, 'Wort', 'IPA'; they are read as rows"
    ]


def test_a_row_that_looks_like_a_heading_in_two_ways_counts_once() -> None:
    """Its cells are usual names, and no phones. A blank line is above it."""
    heading = Row(2, Query("word"), "pronunciation", ("word", "pronunciation"))
    phones = Row(3, Query("abil"), "a b i l", ("abil", "a b i l"))
    (text,) = likely_headings([heading, phones], PRONUNCIATION)
    assert text.startswith("rows that may be headings: 1 of 2, such as line 2, ")


@pytest.mark.parametrize(
    ("lines", "task"),
    [
        pytest.param(FORMS, INFLECTION, id="forms"),
        pytest.param(PHONES, PRONUNCIATION, id="phones"),
        pytest.param(["Wort\tAussprache"], PRONUNCIATION, id="no other row to compare with"),
        pytest.param(["Wort\tLaute", "Haus\thaʊs"], StringTask(), id="no usual name"),
        pytest.param(["form\tfɔɹm", "form\tfɔːm"], StringTask(), id="a name that is a word below"),
    ],
)
def test_other_first_rows_are_not_named(lines: list[str], task: StringTask) -> None:
    assert [*likely_headings(rows_in(lines, task), task)] == []
