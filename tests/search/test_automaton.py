"""Automata of expressions over tokens, and searches that follow them."""

import itertools
import random

import numpy as np
import pytest

from onmt_entmax.search.automaton import SATISFIED, VIOLATED, Automaton, RowAutomata
from onmt_entmax.search.automaton_compiler import compile_expression
from onmt_entmax.search.expression import (
    Concatenation,
    ExpressionError,
    Intersection,
    OneOf,
    Union,
    containing,
    reverse,
)
from onmt_entmax.search.expression_parser import parse_expression
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
    special = {text: OneOf(frozenset({text})) for text in "()|*+?.[]^\\"}
    for text, token in special.items():
        for written in (f"\\{text}", f"[\\{text}]"):
            assert parse_expression(written) == Concatenation((token,))
    assert parse_expression(r"a\ b") == Concatenation((OneOf(frozenset({"a b"})),))
    assert parse_expression(r"\. [\] ^ $ {3}]") == Concatenation(
        (special["."], OneOf(frozenset({"]", "^", "$", "{3}"})))
    )


def test_an_escaped_space_at_the_end_is_part_of_the_token() -> None:
    """Space after it says nothing."""
    for written in ("a\\ ", "a\\  ", " a\\ "):
        assert parse_expression(written) == Concatenation((OneOf(frozenset({"a "})),))


def test_several_signs_of_repetition_are_as_one() -> None:
    """Each `+` in its own right would double the expression."""
    for signs, one in (("+" * 1000, "+"), ("??", "?"), ("+?", "*"), ("?+", "*"), ("*+", "*")):
        assert parse_expression(f"a{signs} b") == parse_expression(f"a{one} b")


def test_an_automaton_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onmt_entmax.search.automaton_compiler._MOST_TRANSITIONS", 100)
    words = [str(token) for token in range(2, 12)]
    wanted = Intersection(tuple(containing([word]) for word in words))
    with pytest.raises(ExpressionError, match="more than 100 transitions"):
        compile_expression(wanted, dict(zip(words, range(2, 12), strict=True)).get, EOS)


def test_alternatives_that_need_nothing_more_share_a_state() -> None:
    """Else the states of twenty alternatives would be their million subsets."""
    words = [str(token) for token in range(2, 22)]
    anywhere = Union(tuple(containing([word]) for word in words))
    ids = dict(zip(words, range(2, 22), strict=True))
    automaton = compile_expression(anywhere, ids.get, EOS)
    assert len(automaton.table) == 3  # violated, satisfied, and the start
    assert after(automaton, (7,)) == SATISFIED


def test_one_of_several_phrases_is_enough() -> None:
    automaton = compiled(containing(["2", "3"], ["4"]), WORDS, EOS)
    accepted = {
        output: after(automaton, output) == SATISFIED
        for output in [(5, 4), (2, 2, 3), (2, 5, 3), (3, 2), ()]
    }
    assert accepted == {(5, 4): True, (2, 2, 3): True, (2, 5, 3): False, (3, 2): False, (): False}


def test_a_token_that_no_output_has_is_never_read() -> None:
    """`[^x]*` is then every output, and `x` none."""
    assert compile_expression(parse_expression("[^ x ]*"), {}.get, EOS).start == SATISFIED
    assert compile_expression(parse_expression("x"), {}.get, EOS).start == VIOLATED


def test_a_token_may_be_excluded_up_to_the_end() -> None:
    automaton = compiled(parse_expression("3 [^ 2 ]*"), WORDS, EOS)
    assert after(automaton, (3, 4, 5, EOS)) == SATISFIED
    assert after(automaton, (3, 4, 2)) == VIOLATED


def test_a_reversed_expression_reads_from_right_to_left() -> None:
    automaton = compiled(reverse(parse_expression("2 3* 4 | 3 (2 4)*")), WORDS, EOS)
    for output in [(4, 3, 3, 2), (4, 2, 4, 2, 3)]:
        assert after(automaton, (*output, EOS)) == SATISFIED
        assert after(automaton, (*output[::-1], EOS)) == VIOLATED


def test_sentences_share_an_automaton_or_have_their_own() -> None:
    first, second = compiled(containing(["2"]), WORDS, EOS), compiled(containing(["3"]), WORDS, EOS)
    rows = RowAutomata([first, None, second, first], 6)
    sentence, state = np.array([0, 1, 2, 3]), np.array([first.start, 0, second.start, first.start])
    after_2 = rows.step(sentence, state, np.full(4, 2))
    assert after_2.tolist() == [SATISFIED, 0, second.start, SATISFIED]
    assert rows.distance(sentence, state).tolist() == [1, 0, 1, 1]
