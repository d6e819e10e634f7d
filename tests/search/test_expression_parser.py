"""The text of an expression over tokens: special characters, repetition, and errors."""

import pytest

from onmt_entmax.search.expression import Concatenation, ExpressionError, OneOf
from onmt_entmax.search.expression_parser import parse_expression


def one_of(*tokens: str) -> Concatenation:
    """Return the expression of an output of one of these tokens."""
    return Concatenation((OneOf(frozenset(tokens)),))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a (b", "character 3: '(' is not closed"),
        ("a ) b", "character 3: ')' closes nothing"),
        ("a | * b", "character 5: '*' repeats nothing"),
        ("[a b", "character 1: '[' is not closed"),
        ("[a .]", "character 4: '.' in brackets needs a backslash"),
        ("[^]", "character 1: the brackets name no token"),
        (r"\w+", r"character 1: \w is not supported: a backslash goes before one of"),
        (r"[a b\d]", r"character 5: \d is not supported: a backslash goes before one of"),
        ("a b{3}", "character 4: the count {3} is not supported: write the part as often"),
        ("(a){2,}", "character 4: the count {2,} is not supported: write the part as often"),
        ("^a$", "character 1: the anchors ^ and $ are not supported, as an expression is"),
        ("a|b$", "character 3: the anchors ^ and $ are not supported, as an expression is"),
        ("a\\", "ends in a backslash, which says nothing"),
        (
            "a \\\nb",
            r"character 3: a backslash before '\n' is not supported: a backslash goes before",
        ),
        (
            "[a \\\t]",
            r"character 4: a backslash before '\t' is not supported: a backslash goes before",
        ),
    ],
)
def test_an_expression_that_cannot_be_read_is_named(text: str, error: str) -> None:
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


@pytest.mark.parametrize("text", ["a\\ ", "a\\  ", " a\\ "])
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
def test_several_signs_of_repetition_are_as_one(signs: str, sign: str) -> None:
    """Each `+` in its own right would double the expression."""
    assert parse_expression(f"a{signs} b") == parse_expression(f"a{sign} b")
