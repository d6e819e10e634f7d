"""Characters that are likely mistakes in a table: spaces, invisible ones, mixed scripts."""

import pytest

from onmt_entmax.strings.checks import oddities
from tests.strings.checked_rows import FORMS, INFLECTION, PHONES, PRONUNCIATION, rows_in

MIXED = "c\N{CYRILLIC SMALL LETTER A}"  # which looks like "ca"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(
            "put\t put\tV",
            "spaces around sources, targets or tags, which a model learns: 1",
            id="a space before a target",
        ),
        pytest.param(
            "u\N{COMBINING CIRCUMFLEX ACCENT}\tb\tV",
            "rows that are not in Unicode's normal form NFC: 1 of 4, such as line 4; letters",
            id="a decomposed letter",
        ),
        pytest.param(
            "a\t<s>\tV",
            "rows with a symbol of the model itself (<unk>, <blank>, <s>, </s> or <copyN>): 1 of 4",
            id="the start symbol",
        ),
        pytest.param(
            "a\tx<copy1>\tV", "rows with a symbol of the model itself ", id="a placeholder"
        ),
        pytest.param(
            f"{MIXED}\t{MIXED}\tV",
            f"rows that mix scripts: 1 of 4: line 4, '{MIXED}' mixes scripts: Latin with ",
            id="two scripts in a word",
        ),
    ],
)
def test_a_mistake_below_good_rows_is_named(line: str, message: str) -> None:
    """It is in line 4, and the only one."""
    (text,) = oddities(rows_in([*FORMS, line], INFLECTION), INFLECTION)
    assert text.startswith(message)


@pytest.mark.parametrize("character", "\u200b\ufeff\xad\u034f\u200e\u2060\x00\x85", ids=ascii)
@pytest.mark.parametrize(
    "row", ["dr{}aw\tdrew\tV;PST", "draw\tdr{}ew\tV;PST"], ids=["source", "target"]
)
def test_an_invisible_character_is_named(character: str, row: str) -> None:
    (text,) = oddities(rows_in([*FORMS, row.format(character)], INFLECTION), INFLECTION)
    assert text == (
        f"rows with invisible characters, such as U+{ord(character):04X}, which a model learns: "
        "1 of 4, such as line 4"
    )


def test_the_mark_of_direction_of_arabic_is_named() -> None:
    row = "كتب\N{ARABIC LETTER MARK}\tكتب\tV"
    (text,) = oddities(rows_in([*FORMS, row], INFLECTION), INFLECTION)
    assert "invisible characters, such as U+061C" in text


@pytest.mark.parametrize("character", "\u200c\u200d", ids=ascii)
def test_joiners_are_not_a_mistake(character: str) -> None:
    row = f"dr{character}aw\tdr{character}ew\tV;PST"
    assert [*oddities(rows_in([*FORMS, row], INFLECTION), INFLECTION)] == []


@pytest.mark.parametrize("space", "\xa0\u2009\u202f\u3000", ids=ascii)
def test_a_space_that_divides_nothing_is_named(space: str) -> None:
    row = f"mal\tm{space}a{space}l"
    (text,) = oddities(rows_in([*PHONES, row], PRONUNCIATION), PRONUNCIATION)
    assert text == (
        f"rows with a space that is not U+0020, such as U+{ord(space):04X}, which is a symbol and "
        "divides none: 1 of 3, such as line 3"
    )


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            ["þing\tθ i ŋ", "abil\ta b i l", "as\tχʷ s"], id="phones of IPA, which mixes scripts"
        ),
        pytest.param(["less\tl x<s> s", "s\ts < >"], id="symbols that are parts of <s>"),
    ],
)
def test_phones_are_not_a_mistake(lines: list[str]) -> None:
    assert [*oddities(rows_in(lines, PRONUNCIATION), PRONUNCIATION)] == []
