"""Likely mistakes in tables: each is named in one sentence, with the first line that has it."""

import pytest

from onmt_entmax.strings.checks import left_out_tags, oddities, several_targets
from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.task import StringTask
from tests.strings.checked_rows import FORMS, INFLECTION, PHONES, PRONUNCIATION, rows_in

# --- cells and rows --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(
            '"put"\t"put"\tV',
            "rows in quotes, which a model learns: 1 of 4, such as line 4; write the table without",
            id="quotes",
        ),
        pytest.param(
            'put\t"put, putted"\tV',
            "rows in quotes, which a model learns: 1 of 4, such as line 4; write the table without",
            id="quotes around a comma",
        ),
        pytest.param("put\tput\t", "rows without tags: 1 of 4, such as line 4", id="no tags"),
        pytest.param(
            "put\tput\tPST;V",
            "rows with tags in another order than in most rows, which is another query: 1 of 4, "
            "such as line 4, 'PST;V' for 'V;PST'",
            id="tags in another order",
        ),
        pytest.param(
            "lemma\tform\ttags",
            "rows that may be headings: 1 of 4, such as line 4, 'lemma', 'form', 'tags'; they are",
            id="a heading",
        ),
        pytest.param(
            FORMS[0],
            "rows that repeat earlier ones: 1 of 4, such as 'draw', 'drew'",
            id="the first row again",
        ),
    ],
)
def test_a_mistake_below_good_rows_is_named(line: str, message: str) -> None:
    """It is in line 4, and the only one."""
    (text,) = oddities(rows_in([*FORMS, line], INFLECTION), INFLECTION)
    assert text.startswith(message)


def test_numbered_variants_of_a_source_are_named() -> None:
    rows = ["an\ta n", "an(2)\tə n", "in(2)\ti n"]  # no row has `in` without a number
    (text,) = oddities(rows_in(rows, PRONUNCIATION), PRONUNCIATION)
    assert text.startswith("sources with a number, such as 'an(2)', which are there without it")
    assert ": 1 of 3, such as line 2; if they are variants" in text


@pytest.mark.parametrize(
    ("lines", "task"),
    [
        pytest.param(FORMS, INFLECTION, id="forms"),
        pytest.param(["draw\tdrew\tV;NOM(2, SG)"], INFLECTION, id="a space inside a tag"),
        pytest.param(PHONES, PRONUNCIATION, id="phones"),
        pytest.param(["a\ta"], PRONUNCIATION, id="a single letter"),
    ],
)
def test_good_rows_are_not_warned_of(lines: list[str], task: StringTask) -> None:
    assert [*oddities(rows_in(lines, task), task)] == []


@pytest.mark.parametrize("task", [INFLECTION, PRONUNCIATION], ids=["inflection", "pronunciation"])
def test_a_table_without_rows_is_not_warned_of(task: StringTask) -> None:
    assert [*oddities([], task)] == []


# --- targets ---------------------------------------------------------------------------------


def test_a_target_that_may_mean_none_is_named() -> None:
    rows = rows_in([*FORMS, "can\t-\tV", "may\t-\tV"], INFLECTION)
    assert [*oddities(rows, INFLECTION)] == [
        "rows with the target '-', which a model learns: 2 of 5, such as line 4; if these have no "
        "target, leave them out"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["can\t-\tV", "can\t-\tN"], id="all of one source"),
        pytest.param(["nana\tnan\tV", "nans\tnan\tV"], id="nan, a word in small letters"),
        pytest.param(["NA\tNA\tN", "to\tNA\tN"], id="NA, which is its own source, and another's"),
    ],
)
def test_a_target_that_may_be_a_word_is_not_named(lines: list[str]) -> None:
    assert [*oddities(rows_in([*FORMS, *lines], INFLECTION), INFLECTION)] == []


def test_a_note_counts_queries_with_several_targets() -> None:
    rows = rows_in(["dream\tdreamed\tV", "dream\tdreamt\tV", "go\twent\tV"], INFLECTION)
    assert several_targets(rows) == (
        "queries with several targets: 1 of 2, such as 'dream' with 'dreamed', 'dreamt'; any of "
        "them counts as right"
    )


def test_without_several_targets_there_is_no_note() -> None:
    assert several_targets(rows_in(["dream\tdreamt\tV", "go\twent\tV"], INFLECTION)) == ""


# --- tags ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param(
            ["a\tb\t2", "c\td\t17"],
            "tags that are numbers, such as '2': 2 rows of 2; if they are",
            id="numbers",
        ),
        pytest.param(
            ["a\tb\tV|PST", "c\td\tV|PRS"],
            "no separator divides tags: 'V|PST' is one tag; ",
            id="a vertical bar between tags",
        ),
        pytest.param(
            ["a\tb\tN+ACC(SG)", "c\td\tV+IMP"],
            "no separator divides tags: 'N+ACC(SG)' is one tag; ",
            id="a plus between tags",
        ),
        pytest.param(
            ["a\tb\tN\uff1bPL", "c\td\tN\uff1bSG"],
            "no separator divides tags: 'N\uff1bPL' is one tag; ",
            id="a full-width semicolon between tags",
        ),
    ],
)
def test_a_column_that_is_likely_not_tags_is_named(lines: list[str], message: str) -> None:
    (text,) = oddities(rows_in(lines, INFLECTION), INFLECTION)
    assert text.startswith(message)


def sentences_on_left_out_tags(heading: str) -> list[str]:
    """Return the sentences on the tags of forms below a heading, which names their columns."""
    lines = [heading, *FORMS]
    layout = guess_layout(lines, "x")
    return [*left_out_tags(rows_in(lines, StringTask(layout.columns)), layout)]


def test_a_left_out_column_that_looks_like_tags_is_named() -> None:
    assert sentences_on_left_out_tags("lemma\tform\tMerkmale") == [
        "column 3 ('Merkmale') is left out, but looks like tags, such as 'V;PST'; "
        "--columns source,target,tags reads them"
    ]


def test_a_column_of_tags_that_is_read_is_not_named() -> None:
    assert sentences_on_left_out_tags("lemma\tform\ttags") == []


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        pytest.param(["draw\tdrew\tPST", "draw\tdraws\tPRS"] * 2, True, id="tags of one word each"),
        pytest.param(["colour\tk V\tGB", "color\tk V\tUS"] * 2, False, id="countries"),
        pytest.param(["lead\tl i d\tA1", "lead\tl E d\tA2"], False, id="numbers of rows"),
    ],
)
def test_a_column_of_codes_is_named_if_it_may_choose_among_targets(
    rows: list[str], named: bool
) -> None:
    lines = ["lemma\tform\tcode", *rows]
    layout = guess_layout(lines, "x")
    read = rows_in(lines, StringTask(layout.columns))
    assert len(read) == len(rows)
    assert any("looks like tags" in text for text in left_out_tags(read, layout)) == named


def sentences_on_left_out_columns(heading: str, rows: list[str]) -> list[str]:
    """Return the sentences on the columns of a table that its heading does not explain."""
    lines = [heading, *rows]
    layout = guess_layout(lines, "x")
    return [*left_out_tags(rows_in(lines, StringTask(layout.columns)), layout)]


CASES = [
    f"{noun}\t{noun}{ending}\t{case}\t{number}"
    for noun in ("Hund", "Tag", "Weg")
    for ending, case, number in (("", "nom", "sg"), ("es", "gen", "sg"), ("e", "nom", "pl"))
]


def test_left_out_columns_that_tell_targets_apart_are_named() -> None:
    assert sentences_on_left_out_columns("lemma\tform\tcase\tnumber", CASES) == [
        "column 3 ('case') and column 4 ('number') are left out, but say which target of a source "
        "is meant; to train with them, join them to one column of tags, such as `NOM;PL`"
    ]


def test_one_left_out_column_of_words_that_tells_targets_apart_is_named() -> None:
    rows = [row.rpartition("\t")[0] for row in CASES if row.endswith("sg")]
    assert sentences_on_left_out_columns("lemma\tform\tcase", rows) == [
        "column 3 ('case') is left out, but says which target of a source is meant; "
        "--columns source,target,tags reads it as tags"
    ]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(["a\tb\tx", "a\tc\ty", "d\te\tx", "f\tg\ty"], id="few sources with several"),
        pytest.param(["a\tb\tx", "a\tc\tx", "d\te\ty", "d\tf\ty"], id="one cell for both targets"),
        pytest.param(["a\tb\t1", "a\tc\t2", "d\te\t1", "d\tf\t2"], id="numbers"),
        pytest.param(["a\tb\tw", "a\tc\tx", "d\te\ty", "d\tf\tz"], id="remarks, none twice"),
        pytest.param(["a\tb\t", "a\tc\t", "d\te\t", "d\tf\t"], id="an empty column"),
    ],
)
def test_other_left_out_columns_are_not_named(rows: list[str]) -> None:
    assert sentences_on_left_out_columns("word\tipa\tremark", rows) == []
