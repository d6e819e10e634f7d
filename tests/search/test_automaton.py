"""Automata of expressions over tokens: what they accept, what decides, and how large they are."""

import itertools
import random
from typing import NamedTuple

import numpy as np
import pytest

from onmt_entmax.search.automaton import SATISFIED, VIOLATED, Automaton, RowAutomata
from onmt_entmax.search.automaton_compiler import compile_expression
from onmt_entmax.search.expression import (
    ExpressionError,
    Intersection,
    Union,
    containing,
    reverse,
)
from onmt_entmax.search.expression_parser import parse_expression
from tests.search.automata import after, compiled
from tests.search.enumeration import Tokens
from tests.search.expressions import Matcher, random_expression
from tests.search.tables import EOS

WORDS = [2, 3, 4]

# --- random expressions, against Python's `re` ---

# All outputs of up to three tokens: those of expressions and one that they do not have.
OUTPUTS: list[Tokens] = [
    output for length in range(4) for output in itertools.product([*WORDS, 5], repeat=length)
]


class Compiled(NamedTuple):
    """The automaton of a random expression, and what Python's `re` says of an output."""

    automaton: Automaton
    matches: Matcher


@pytest.fixture(scope="module", params=range(40))
def expression(request: pytest.FixtureRequest) -> Compiled:
    expression, matches = random_expression(random.Random(request.param), WORDS)
    return Compiled(compiled(expression, WORDS, EOS), matches)


def test_automata_accept_what_python_matches(expression: Compiled) -> None:
    for output in OUTPUTS:
        state = after(expression.automaton, (*output, EOS))
        assert state == (SATISFIED if expression.matches(output) else VIOLATED), output


def test_an_accepted_output_needs_no_more_tokens(expression: Compiled) -> None:
    for output in OUTPUTS:
        needed = expression.automaton.distance[after(expression.automaton, output)]
        assert (needed == 0) == expression.matches(output), output


def test_no_output_differs_from_what_its_prefix_decided(expression: Compiled) -> None:
    for output in OUTPUTS:
        prefixes = [output[:length] for length in range(len(output))]
        wrong = VIOLATED if expression.matches(output) else SATISFIED
        assert wrong not in {after(expression.automaton, prefix) for prefix in prefixes}, output


def shortest_paths(automaton: Automaton, start: int) -> dict[int, Tokens]:
    """Return a shortest path from a state to each state that it leads to."""
    paths: dict[int, Tokens] = {start: ()}
    order = [start]
    for state in order:  # which grows
        for token in (*WORDS, 5):
            following = int(automaton.step(np.array([state]), np.array([token]))[0])
            if following not in paths:
                paths[following] = (*paths[state], token)
                order.append(following)
    return paths


def test_only_states_with_one_outcome_decide(expression: Compiled) -> None:
    automaton = expression.automaton
    for state, path in shortest_paths(automaton, automaton.start).items():
        continuations = shortest_paths(automaton, state).values()
        outcomes = {expression.matches((*path, *tokens)) for tokens in continuations}
        assert outcomes == {VIOLATED: {False}, SATISFIED: {True}}.get(state, {False, True})


# --- size ---


def test_an_automaton_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onmt_entmax.search.automaton_compiler._MOST_TRANSITIONS", 100)
    words = [str(token) for token in range(2, 12)]
    too_large = Intersection(tuple(containing([word]) for word in words))
    with pytest.raises(ExpressionError, match="more than 100 transitions"):
        compile_expression(too_large, dict(zip(words, range(2, 12), strict=True)).get, EOS)


def test_alternatives_that_need_nothing_more_share_a_state() -> None:
    """Without that, the states of twenty alternatives would be their million subsets."""
    words = [str(token) for token in range(2, 22)]
    anywhere = Union(tuple(containing([word]) for word in words))
    ids = dict(zip(words, range(2, 22), strict=True))
    automaton = compile_expression(anywhere, ids.get, EOS)
    assert len(automaton.table) == 3  # violated, satisfied, and the start
    assert after(automaton, (7,)) == SATISFIED


# --- examples ---


@pytest.mark.parametrize(
    ("output", "has_phrase"),
    [((5, 4), True), ((2, 2, 3), True), ((2, 5, 3), False), ((3, 2), False), ((), False)],
)
def test_one_of_several_phrases_is_enough(output: Tokens, has_phrase: bool) -> None:
    automaton = compiled(containing(["2", "3"], ["4"]), WORDS, EOS)
    assert (after(automaton, output) == SATISFIED) == has_phrase


@pytest.mark.parametrize(("text", "start"), [("[^ x ]*", SATISFIED), ("x", VIOLATED)])
def test_a_token_that_no_output_has_is_never_read(text: str, start: int) -> None:
    """`[^x]*` is then every output, and `x` none."""
    assert compile_expression(parse_expression(text), {}.get, EOS).start == start


def test_a_token_may_be_excluded_up_to_the_end() -> None:
    automaton = compiled(parse_expression("3 [^ 2 ]*"), WORDS, EOS)
    assert after(automaton, (3, 4, 5, EOS)) == SATISFIED
    assert after(automaton, (3, 4, 2)) == VIOLATED


@pytest.mark.parametrize("output", [(4, 3, 3, 2), (4, 2, 4, 2, 3)])
def test_a_reversed_expression_reads_from_right_to_left(output: Tokens) -> None:
    automaton = compiled(reverse(parse_expression("2 3* 4 | 3 (2 4)*")), WORDS, EOS)
    assert after(automaton, (*output, EOS)) == SATISFIED
    assert after(automaton, (*output[::-1], EOS)) == VIOLATED


# --- several sentences ---


def test_sentences_share_an_automaton_or_have_their_own() -> None:
    first, second = compiled(containing(["2"]), WORDS, EOS), compiled(containing(["3"]), WORDS, EOS)
    rows = RowAutomata([first, None, second, first], 6)
    sentence, state = np.array([0, 1, 2, 3]), np.array([first.start, 0, second.start, first.start])
    after_2 = rows.step(sentence, state, np.full(4, 2))
    assert after_2.tolist() == [SATISFIED, 0, second.start, SATISFIED]
    assert rows.distance(sentence, state).tolist() == [1, 0, 1, 1]
