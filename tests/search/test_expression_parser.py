"""Expressions over tokens are parsed: special characters, repetition, and errors."""

import pytest

from onmt_entmax.search.expression import Concatenation, ExpressionError, OneOf
from onmt_entmax.search.expression_parser import parse_expression


def one_of(*tokens: str) -> Concatenation:
    """Return the expression of an output of one of these tokens."""
    return Concatenation((OneOf(frozenset(tokens)),))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("a (b", "character 3: '(' is not closed", id="a parenthesis is not closed"),
        pytest.param("a ) b", "character 3: ')' closes nothing", id="a parenthesis closes nothing"),
        pytest.param("a | * b", "character 5: '*' repeats nothing", id="a repetition of nothing"),
        pytest.param("[a b", "character 1: '[' is not closed", id="brackets are not closed"),
        pytest.param(
            "[a .]", "character 4: '.' in brackets needs a backslash", id="a dot in brackets"
        ),
        pytest.param(
            "[^]", "character 1: the brackets name no token", id="brackets without a token"
        ),
        pytest.param(
            r"\w+",
            r"character 1: \w is not supported: a backslash goes before one of",
            id="a class of characters",
        ),
        pytest.param(
            r"[a b\d]",
            r"character 5: \d is not supported: a backslash goes before one of",
            id="a class of characters in brackets",
        ),
        pytest.param(
            "a b{3}",
            "character 4: the count {3} is not supported: write the part as often",
            id="a count",
        ),
        pytest.param(
            "(a){2,}",
            "character 4: the count {2,} is not supported: write the part as often",
            id="a count from two",
        ),
        pytest.param(
            "^a$",
            "character 1: the anchors ^ and $ are not supported, as an expression is",
            id="anchors",
        ),
        pytest.param(
            "a|b$",
            "character 3: the anchors ^ and $ are not supported, as an expression is",
            id="an anchor of one alternative",
        ),
        pytest.param("a\\", "ends in a backslash, which says nothing", id="a backslash at the end"),
        pytest.param(
            "a \\\nb",
            r"character 3: a backslash before '\n' is not supported: a backslash goes before",
            id="a backslash before a line break",
        ),
        pytest.param(
            "[a \\\t]",
            r"character 4: a backslash before '\t' is not supported: a backslash goes before",
            id="a backslash before a tab",
        ),
    ],
)
def test_an_error_names_the_character_and_what_is_wrong(text: str, error: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_expression(text)
    assert str(raised.value).startswith(error)


def test_an_expression_that_is_nested_too_deeply_is_named_with_the_place() -> None:
    """How deep is too deep depends on Python's stack, but not all of it can be read."""
    with pytest.raises(ExpressionError, match=r"^character \d+: nested too deeply$") as raised:
        parse_expression("(" * 10_000)
    place = int(str(raised.value).split()[1].rstrip(":"))
    assert 1 < place < 10_000


@pytest.mark.parametrize("character", list("()|*+?.[]^\\"))
@pytest.mark.parametrize("form", ["\\{}", "[\\{}]"], ids=["outside brackets", "in brackets"])
def test_a_special_character_is_a_token_after_a_backslash(character: str, form: str) -> None:
    assert parse_expression(form.format(character)) == one_of(character)


def test_an_escaped_space_is_part_of_a_token() -> None:
    assert parse_expression(r"a\ b") == one_of("a b")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\\ ", id="nothing after it"),
        pytest.param("a\\  ", id="another space after it"),
        pytest.param(" a\\ ", id="a space before the token"),
    ],
)
def test_an_escaped_space_at_the_end_is_part_of_the_token(text: str) -> None:
    """Space after it says nothing."""
    assert parse_expression(text) == one_of("a ")


def test_some_special_characters_need_no_backslash_in_brackets() -> None:
    assert parse_expression(r"\. [\] ^ $ {3}]") == Concatenation(
        (OneOf(frozenset({"."})), OneOf(frozenset({"]", "^", "$", "{3}"})))
    )


@pytest.mark.parametrize(
    ("signs", "sign"), [("+" * 1000, "+"), ("??", "?"), ("+?", "*"), ("?+", "*"), ("*+", "*")]
)
def test_several_signs_of_repetition_mean_what_one_does(signs: str, sign: str) -> None:
    """Each `+` in its own right would double the expression."""
    assert parse_expression(f"a{signs} b") == parse_expression(f"a{sign} b")
