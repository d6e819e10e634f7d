"""Likely mistakes in tables."""

import pytest

from onmt_entmax.strings.checks import left_out_tags, oddities, several_targets
from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import Row, rows_of
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.strings.units import Unit

INFLECTION = StringTask(("source", "target", "tags"))
PRONUNCIATION = StringTask(target=Unit.between(" "))
FORMS = ["draw\tdrew\tV;PST", "go\twent\tV;PST", "walk\twalks\tV;PRS"]
MIXED = "c\N{CYRILLIC SMALL LETTER A}"  # which looks like "ca"
PHONES = ["abil\ta b i l", "ploaie\tp lʷ a j e"]


def rows_in(lines: list[str], task: StringTask) -> list[Row]:
    """Return the rows that can be read of a table for a task."""
    layout = guess_layout(lines, "x", task.columns)
    return [row for row in rows_of(lines, layout, task) if isinstance(row, Row)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(
            "put\t put\tV",
            "spaces around sources, targets or tags, which a model learns: 1",
            id="spaces",
        ),
        pytest.param(
            '"put"\t"put"\tV',
            "rows in quotes, which a model learns: 1 of 4, such as line 4; write the table without",
            id="quotes",
        ),
        pytest.param("put\tput\t", "rows without tags: 1 of 4, such as line 4", id="no tags"),
        pytest.param(
            "u\N{COMBINING CIRCUMFLEX ACCENT}\tb\tV",
            "rows that are not in Unicode's normal form NFC: 1 of 4, such as line 4; letters",
            id="decomposed",
        ),
        pytest.param(
            "a\t<s>\tV",
            "rows with a symbol of the model itself (<unk>, <blank>, <s>, </s> or ",
            id="start symbol",
        ),
        pytest.param("a\tx<copy1>\tV", "rows with a symbol of the model itself ", id="placeholder"),
        pytest.param(
            "lemma\tform\ttags",
            "rows that may be headings: 1 of 4, such as line 4, 'lemma', 'form', 'tags'; they are",
            id="heading",
        ),
        pytest.param(
            f"{MIXED}\t{MIXED}\tV",
            f"rows that mix scripts: 1 of 4: line 4, '{MIXED}' mixes scripts: Latin with ",
            id="two scripts",
        ),
        pytest.param(
            FORMS[0], "rows that repeat earlier ones: 1 of 4, such as 'draw', 'drew'", id="repeated"
        ),
    ],
)
def test_a_likely_mistake_is_named(line: str, message: str) -> None:
    """It is in line 4, below three good rows."""
    (text,) = oddities(rows_in([*FORMS, line], INFLECTION), INFLECTION)
    assert text.startswith(message)


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
            id="another separator",
        ),
        pytest.param(
            ["a\tb\tN+ACC(SG)", "c\td\tV+IMP"],
            "no separator divides tags: 'N+ACC(SG)' is one tag; ",
            id="plus",
        ),
    ],
)
def test_a_column_is_likely_no_tags(lines: list[str], message: str) -> None:
    (text,) = oddities(rows_in(lines, INFLECTION), INFLECTION)
    assert text.startswith(message)


@pytest.mark.parametrize("character", "\u200b\ufeff\xad\u200e\u2060\x00\x85", ids=ascii)
@pytest.mark.parametrize(
    "row", ["dr{}aw\tdrew\tV;PST", "draw\tdr{}ew\tV;PST"], ids=["source", "target"]
)
def test_an_invisible_character_is_named(character: str, row: str) -> None:
    (text,) = oddities(rows_in([*FORMS, row.format(character)], INFLECTION), INFLECTION)
    assert text.startswith(f"rows with invisible characters, such as U+{ord(character):04X}, which")
    assert text.endswith(": 1 of 4, such as line 4")


@pytest.mark.parametrize("character", "\u200c\u200d", ids=ascii)
def test_joiners_are_not_a_mistake(character: str) -> None:
    row = f"dr{character}aw\tdr{character}ew\tV;PST"
    assert not list(oddities(rows_in([*FORMS, row], INFLECTION), INFLECTION))


@pytest.mark.parametrize("space", "\xa0\u2009\u202f\u3000", ids=ascii)
def test_a_space_that_divides_nothing_is_named(space: str) -> None:
    row = f"mal\tm{space}a{space}l"
    (text,) = oddities(rows_in([*PHONES, row], PRONUNCIATION), PRONUNCIATION)
    assert text.startswith(f"rows with a space that is not U+0020, such as U+{ord(space):04X}, ")
    assert text.endswith(": 1 of 3, such as line 3")


def test_numbered_variants_of_a_source_are_named() -> None:
    rows = ["an\ta n", "an(2)\tə n", "in(2)\ti n"]  # no row has `in` without a number
    (text,) = oddities(rows_in(rows, PRONUNCIATION), PRONUNCIATION)
    assert text.startswith("sources with a number, such as 'an(2)', which are there without it")
    assert ": 1 of 3, such as line 2; if they are variants" in text


def test_a_first_row_without_phones_may_be_a_heading() -> None:
    (text,) = oddities(rows_in(["Wort\tAussprache", *PHONES], PRONUNCIATION), PRONUNCIATION)
    assert text.startswith("rows that may be headings: 1 of 3, such as line 1, 'Wort', 'Ausspra")


def test_a_heading_counts_once_by_whatever_rule() -> None:
    """Below a blank first line, a heading is the first row."""
    heading = Row(2, Query("word"), "pronunciation", ("word", "pronunciation"))
    phones = Row(3, Query("abil"), "a b i l", ("abil", "a b i l"))
    (text,) = oddities([heading, phones], PRONUNCIATION)
    assert text.startswith("rows that may be headings: 1 of 2, such as line 2, 'word', ")


@pytest.mark.parametrize(
    ("lines", "task"),
    [
        pytest.param(FORMS, INFLECTION, id="forms"),
        pytest.param(["draw\tdrew\tV;NOM(2, SG)"], INFLECTION, id="a space inside a tag"),
        pytest.param(PHONES, PRONUNCIATION, id="phones"),
        pytest.param(["a\ta"], PRONUNCIATION, id="a single letter"),
        # Nothing below says what targets look like.
        pytest.param(["Wort\tAussprache"], PRONUNCIATION, id="a single row of words"),
        pytest.param(
            ["þing\tθ i ŋ", "abil\ta b i l", "as\tχʷ s"], PRONUNCIATION, id="IPA mixes scripts"
        ),
        pytest.param(["less\tl x<s> s", "s\ts < >"], PRONUNCIATION, id="parts of <s>"),
    ],
)
def test_good_rows_are_not_warned_of(lines: list[str], task: StringTask) -> None:
    assert not [*oddities(rows_in(lines, task), task)]


@pytest.mark.parametrize("task", [INFLECTION, PRONUNCIATION], ids=["inflection", "pronunciation"])
def test_a_table_without_rows_is_not_warned_of(task: StringTask) -> None:
    assert not [*oddities([], task)]


def test_a_note_counts_queries_with_several_targets() -> None:
    rows = rows_in(["dream\tdreamed\tV", "dream\tdreamt\tV", "go\twent\tV"], INFLECTION)
    assert several_targets(rows) == (
        "queries with several targets: 1 of 2, such as 'dream' with 'dreamed', 'dreamt'; any of "
        "them counts as right"
    )


def test_without_several_targets_there_is_no_note() -> None:
    assert several_targets(rows_in(["dream\tdreamt\tV", "go\twent\tV"], INFLECTION)) == ""


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        pytest.param(["can\t-\tV", "may\t-\tV"], True, id="of several sources"),
        pytest.param(["none\tnone\tV", "nan\tNaN\tV"], False, id="words"),
        pytest.param(["can\t-\tV", "can\t-\tN"], False, id="of one source"),
    ],
)
def test_targets_that_stand_for_none_are_named(lines: list[str], named: bool) -> None:
    message = "rows with the target '-', which a model learns: 2 of 5, such as line 4; if these"
    found = oddities(rows_in([*FORMS, *lines], INFLECTION), INFLECTION)
    assert any(text.startswith(message) for text in found) == named


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        pytest.param(["Wort\tIPA", "Haus\thaʊs"], True, id="one usual name"),
        pytest.param(["Wort\tLaute", "Haus\thaʊs"], False, id="no usual name"),
        pytest.param(["form\tfɔɹm", "form\tfɔːm"], False, id="a word that is there again"),
    ],
)
def test_a_first_row_with_one_name_of_a_column_is_named(lines: list[str], named: bool) -> None:
    found = oddities(rows_in(lines, StringTask()), StringTask())
    assert any(text.startswith("rows that may be headings: 1 of 2") for text in found) == named


@pytest.mark.parametrize(
    ("heading", "named"),
    [
        pytest.param("lemma\tform\tMerkmale", True, id="left out"),
        pytest.param("lemma\tform\ttags", False, id="read"),
    ],
)
def test_a_column_of_tags_that_no_name_tells_is_named(heading: str, named: bool) -> None:
    layout = guess_layout([heading, *FORMS], "x")
    task = StringTask(layout.columns)
    rows = [row for row in rows_of([heading, *FORMS], layout, task) if isinstance(row, Row)]
    assert [*left_out_tags(rows, layout)] == [
        "column 3 ('Merkmale') is left out, but looks like tags, such as 'V;PST'; "
        "--columns source,target,tags reads them"
    ] * named


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
    read = [
        row for row in rows_of(lines, layout, StringTask(layout.columns)) if isinstance(row, Row)
    ]
    assert len(read) == len(rows)
    assert any("looks like tags" in text for text in left_out_tags(read, layout)) == named
