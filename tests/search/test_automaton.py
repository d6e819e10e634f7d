"""Automata of expressions over tokens, and searches that follow them."""

import itertools
import random

import numpy as np
import pytest

from onmt_entmax.search import Budget, Constraints, SearchConfig, beam_search, exact_search
from onmt_entmax.search.automaton import SATISFIED, VIOLATED, Automaton, compile_expression
from onmt_entmax.search.expression import (
    Expression,
    ExpressionError,
    containing,
    parse_expression,
)
from tests.search.expressions import Tokens, after, compiled, random_expression
from tests.search.tables import EOS, Fixed, TableStepper

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


def test_an_automaton_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onmt_entmax.search.automaton._MOST_TRANSITIONS", 100)
    words = [str(token) for token in range(2, 12)]
    wanted = Expression("and", tuple(containing([word]) for word in words))
    with pytest.raises(ExpressionError, match="more than 100 transitions"):
        compile_expression(wanted, dict(zip(words, range(2, 12), strict=True)).get, EOS)


def half(text: str) -> Automaton:
    return compiled(parse_expression(text), WORDS, EOS)


# Each token has one half: 2 or 3, then again, then the end.
HALVES = Fixed(
    {
        **{(i,): {2: 0.5, 3: 0.5} for i in WORDS},
        (): {2: 0.5, 3: 0.5},
        **{pair: {EOS: 1.0} for pair in itertools.product([2, 3], repeat=2)},
    }
)


@pytest.mark.parametrize(
    ("text", "found", "satisfied"),
    [
        ("2 .*", 2, (0.5, 0.5)),
        (".* 2 .*", 3, (0.75, 0.75)),
        ("[^2]*", 1, (0.25, 0.25)),
        (".* 4 .*", 0, (0.0, 0.0)),
        ("2", 0, (0.0, 0.0)),
        (".*", 4, (1.0, 1.0)),
    ],
)
def test_an_exhausted_support_gives_the_probability(
    text: str, found: int, satisfied: tuple[float, float]
) -> None:
    config = SearchConfig(5, 0)
    (result,) = beam_search(TableStepper(7), [HALVES], config, automata=[half(text)])
    assert (result.finished, result.certificate.level) == (found, "exhaustive")
    assert result.certificate.satisfied == satisfied
    assert result.certificate.excluded == pytest.approx(1 - satisfied[0])


def test_prefixes_that_decide_count_whole_though_nobody_follows_them() -> None:
    config = SearchConfig(1, 1, stop="first")
    (result,) = beam_search(TableStepper(7), [HALVES], config, automata=[half("2 .*")])
    assert result.certificate.dropped > 0
    assert result.certificate.satisfied == (0.5, 0.5)


@pytest.mark.parametrize(("text", "satisfied"), [(".* 3", (0.0, 0.75)), (".* 3 .*", (0.75, 0.75))])
def test_what_another_constraint_excludes_stays_open(
    text: str, satisfied: tuple[float, float]
) -> None:
    config = SearchConfig(5, 0, constraints=Constraints(banned=frozenset({3})))
    (result,) = beam_search(TableStepper(7), [HALVES], config, automata=[half(text)])
    assert (result.finished, result.certificate.level) == (0, "exhaustive")
    assert result.certificate.satisfied == satisfied


def test_the_beam_has_room_for_prefixes_that_satisfy_a_constraint() -> None:
    """All but one in a thousand outputs begin with 2, and there are many."""
    many = {(2, i): 0.333 for i in WORDS}
    model = Fixed(
        {
            (): {2: 0.999, 3: 0.001},
            (2,): dict.fromkeys(WORDS, 1 / 3),
            **{pair: dict.fromkeys([*WORDS, 5, 6], 0.2) for pair in many},
            **{(*pair, i): {EOS: 0.5, 5: 0.5} for pair in many for i in (*WORDS, 5, 6)},
            (3,): {3: 1.0},
            (3, 3): {3: 1.0},
            (3, 3, 3): {EOS: 1.0},
        }
    )
    config = SearchConfig(2, 1, max_length=3, stop="first")
    (result,) = beam_search(TableStepper(7), [model], config, automata=[half(".* 3 3 .*")])
    assert [h.tokens for h in result.hypotheses] == [(3, 3, 3)]


def test_a_prefix_cut_by_the_length_limit_satisfies_the_constraint_or_is_not_shown() -> None:
    for text, shown in (("2 .*", (2,)), ("2 . .*", None)):
        config = SearchConfig(5, max_length=1)
        (result,) = beam_search(TableStepper(7), [HALVES], config, automata=[half(text)])
        assert (result.unfinished.tokens if result.unfinished else None) == shown


def test_a_beam_takes_the_tokens_that_a_constraint_waits_for_however_rare() -> None:
    words = {2: 0.4, 4: 0.3, 5: 0.2, 6: 0.09, 3: 0.01}
    model = Fixed({(): {2: 1.0}, (2,): words, **{(2, word): {EOS: 1.0} for word in words}})
    config = SearchConfig(1, 1, stop="first")
    (result,) = beam_search(TableStepper(7), [model], config, automata=[half(".* 3 .*")])
    assert [h.tokens for h in result.hypotheses] == [(2, 3)]


def test_a_list_ends_at_its_share_of_what_may_satisfy_the_constraint() -> None:
    """A quarter is half of the half that begins with 2."""
    result = exact_search(
        *(TableStepper(7), [HALVES], SearchConfig(n_best=0), Budget(rows=1)),
        mass=0.5,
        automaton=half("2 .*"),
    )
    assert result.certificate.mass == 0.25


def test_an_exact_search_keeps_what_the_beam_knows_of_the_constraint() -> None:
    """A beam of one drops 3 and 4; it has seen that 2 is mostly followed by a violation."""
    ends = {(2, 3): {EOS: 1.0}, (2, 4): {EOS: 1.0}, (3,): {3: 1.0}, (4,): {4: 1.0}}
    model = Fixed({(): {2: 0.5, 3: 0.3, 4: 0.2}, (2,): {3: 0.9, 4: 0.1}, **ends})
    config = SearchConfig(1, 1, 3, stop="first")
    given = (TableStepper(7), [model], config)
    (start,) = beam_search(*given, automata=[half("2 4 | 3 3 | 4 4")])
    budget = Budget(rows=1, expansions=1)
    result = exact_search(*given, budget, start=start, automaton=half("2 4 | 3 3 | 4 4"))
    assert start.certificate.satisfied is not None
    assert start.certificate.satisfied[1] == pytest.approx(0.55)
    assert result.certificate.satisfied is not None
    assert result.certificate.satisfied[1] == pytest.approx(0.55)
