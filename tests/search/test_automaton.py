"""Automata of expressions over tokens, and searches that follow them."""

import itertools
import random

import numpy as np
import pytest

from onmt_entmax.search.automaton import SATISFIED, VIOLATED, Automaton, compile_expression
from onmt_entmax.search.expression import (
    Expression,
    ExpressionError,
    containing,
    parse_expression,
)
from tests.search.expressions import Tokens, after, compiled, random_expression
from tests.search.tables import EOS

WORDS = [2, 3, 4]


def test_automata_accept_what_python_matches() -> None:
    """States that decide have a proof: no output with such a prefix differs; others have two."""
    decided = 0
    for seed in range(40):
        expression, matches = random_expression(random.Random(seed), WORDS)
        automaton = compiled(expression, WORDS, EOS)
        for length in range(4):
            for output in itertools.product([*WORDS, 5], repeat=length):
                state = after(automaton, output)
                accepts = after(automaton, (*output, EOS))
                assert accepts == (SATISFIED if matches(output) else VIOLATED), (seed, output)
                assert (automaton.distance[state] == 0) == matches(output)
                prefixes = {after(automaton, output[:i]) for i in range(length)}
                decided += bool(prefixes & {SATISFIED, VIOLATED})
                assert VIOLATED not in prefixes or not matches(output)
                assert SATISFIED not in prefixes or matches(output)
        for state, path in shortest_paths(automaton, automaton.start).items():
            ways = {matches((*path, *way)) for way in shortest_paths(automaton, state).values()}
            assert ways == {VIOLATED: {False}, SATISFIED: {True}}.get(state, {False, True}), seed
    assert decided > 500


def shortest_paths(automaton: Automaton, start: int) -> dict[int, Tokens]:
    """Return a shortest way from a state to each state that it leads to."""
    found: dict[int, Tokens] = {start: ()}
    for state in (order := [start]):
        for token in (*WORDS, 5):
            following = int(automaton.step(np.array([state]), np.array([token]))[0])
            if following not in found:
                found[following] = (*found[state], token)
                order.append(following)
    return found


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
        ("(" * 10_000, "nested too deeply"),
    ],
)
def test_an_expression_that_cannot_be_read_is_named(text: str, error: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_expression(text)
    assert str(raised.value).startswith(error)


def test_special_characters_are_tokens_after_a_backslash() -> None:
    special = {text: Expression("in", tokens=frozenset({text})) for text in "()|*+?.[]^\\"}
    for text, token in special.items():
        for written in (f"\\{text}", f"[\\{text}]"):
            assert parse_expression(written) == Expression("then", (token,))
    assert parse_expression(r"a\ b") == Expression(
        "then", (Expression("in", tokens=frozenset({"a b"})),)
    )
    assert parse_expression(r"\. [\] ^ $ {3}]") == Expression(
        "then", (special["."], Expression("in", tokens=frozenset({"]", "^", "$", "{3}"})))
    )


def test_several_signs_of_repetition_are_as_one() -> None:
    """Each `+` in its own right would double the expression."""
    for signs, one in (("+" * 1000, "+"), ("??", "?"), ("+?", "*"), ("?+", "*"), ("*+", "*")):
        assert parse_expression(f"a{signs} b") == parse_expression(f"a{one} b")


def test_an_automaton_too_large_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("onmt_entmax.search.automaton._MOST_TRANSITIONS", 100)
    words = [str(token) for token in range(2, 12)]
    wanted = Expression("and", tuple(containing([word]) for word in words))
    with pytest.raises(ExpressionError, match="more than 100 transitions"):
        compile_expression(wanted, dict(zip(words, range(2, 12), strict=True)).get, EOS)
