"""Searches of models made by hand, with all that their results must say."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from onmt_entmax.search import (
    Automaton,
    Budget,
    Constraints,
    Penalties,
    SearchConfig,
    SearchResult,
    Step,
    beam_search,
    exact_search,
)
from onmt_entmax.search.certificate import Proof
from onmt_entmax.search.expression_parser import parse_expression
from tests.search.expressions import compiled
from tests.search.tables import BOS, EOS, Fixed, TableStepper

Model = dict[tuple[int, ...], dict[int, float]]  # prefixes that are not named end

HALVES = {EOS: 0.5, 2: 0.3, 3: 0.2}
FIRST = {"stop": "first"}
OPTIMAL = {"stop": "optimal"}
AVERAGE = {"penalties": Penalties("avg")}
BETTER_LATER: Model = {
    (): {2: 0.5, 3: 0.45, 4: 0.05},
    (2,): {EOS: 0.96, 4: 0.04},
    (3,): {4: 1.0},
    (3, 4): {5: 1.0},
}
GROWING: Model = {  # each word makes the average better
    (): {EOS: 0.3, 2: 0.7},
    (2,): {3: 1.0},
    (2, 3): {4: 1.0},
    (2, 3, 4): {EOS: 0.4, 5: 0.6},
}
REWARD = {"penalties": Penalties(length_reward=0.5, length_ratio=10.0)}
COVERED = {"penalties": Penalties(coverage_penalty="wu", beta=1.0), **OPTIMAL}
ONE_OF_FOUR: Model = {(): {2: 0.3, 3: 0.28, 4: 0.24, 5: 0.18}} | {
    (i,): {EOS: p, BOS: 1 - p} for i, p in ((2, 0.5), (3, 0.75), (4, 0.5))
}
# Each token has one half: 2 or 3, then again, then the end.
PAIRS: Model = {prefix: {2: 0.5, 3: 0.5} for prefix in ((), (2,), (3,))}
RARE: Model = {  # most outputs begin with 2, and there are many
    (): {2: 0.999, 3: 0.001},
    (2,): dict.fromkeys((2, 3, 4), 1 / 3),
    **{(2, i): dict.fromkeys((2, 3, 4, 5, 6), 0.2) for i in (2, 3, 4)},
    **{(2, i, j): {EOS: 0.5, 5: 0.5} for i in (2, 3, 4) for j in (2, 3, 4, 5, 6)},
    (3,): {3: 1.0},
    (3, 3): {3: 1.0},
}
WORDS = {2: 0.4, 4: 0.3, 5: 0.2, 6: 0.09, 3: 0.01}
A, B = 2, 3
BAN_3 = {"constraints": Constraints(banned=frozenset({3}))}
TAIL: Model = {
    (): {2: 0.6, EOS: 0.4},
    (2,): {BOS: 0.9, 3: 0.06, 4: 0.04},
    (2, 3): {EOS: 0.5, 5: 0.5},
}

BEAM: dict[str, tuple[Model, list[int], dict[str, Any], dict[str, Any]]] = {
    "one live prefix costs one row": (
        {(): {2: 1.0}, (2,): {3: 1.0}},
        [5],
        {},
        {"tokens": [(2, 3)], "rows": 3, "support": 3, "strict": True, "mass": 1, "bound": 0},
    ),
    "finished hypotheses take no place in the beam": (
        {(): {EOS: 0.5, 2: 0.5}, (2,): {EOS: 0.5, 3: 0.5}, (2, 3): {EOS: 0.5, 4: 0.5}},
        [1, 0],
        {},
        {"finished": 4, "level": "exhaustive", "mass": 1, "strict": False, "gap": math.inf},
    ),
    "two fit a beam of two": (
        {(): {2: 0.6, EOS: 0.4}},
        [2],
        OPTIMAL,
        {"level": "exhaustive", "strict": True, "tokens": [(2,)]},
    ),
    "a tie is optimal, and a cut prefix is counted": (
        {(): {EOS: 0.5, 2: 0.5}, (2,): {2: 1.0}},
        [1, 1, 1],
        {},
        {
            "level": "optimal",
            "gap": 0,
            "truncated": 1,
            "dropped": 0,
            "proven": 1,
            "unfinished": None,
        },
    ),
    "where nothing finishes the best prefix is unfinished": (
        {(): {2: 0.6, 3: 0.4}, (2,): {2: 1.0}, (3,): {3: 0.5, 2: 0.5}},
        [5, 1, 1],
        {},
        {"tokens": [], "level": "none", "unfinished": (2,), "bound": 0.6, "gap": -math.inf},
    ),
    "ranks are proven as far as the bound reaches": (
        {(): {EOS: 0.4, 2: 0.35, 3: 0.25}, (2,): {EOS: 0.9, 4: 0.1}},
        [1, 3],
        {},
        {"tokens": [(), (2,), (2, 4)], "bound": 0.25, "level": "optimal", "proven": 2},
    ),
    "prefixes that cannot win are dropped": (
        {(): HALVES},
        [5],
        OPTIMAL,
        {"rows": 1, "dropped": 2, "bound": 0.3, "gap": math.log(0.5 / 0.3)},
    ),
    "unless more are wanted": (
        {(): HALVES},
        [5, 2],
        OPTIMAL,
        {"rows": 3, "dropped": 0, "proven": 2, "tokens": [(), (2,)]},
    ),
    "stop first waits for n_best": ({(): HALVES}, [5, 3], FIRST, {"tokens": [(), (2,), (3,)]}),
    "stop first waits for as many as the beam has": (
        {(): {EOS: 0.5, 2: 0.5}, (2,): {4: 0.7, EOS: 0.3}, (2, 4): {5: 1.0}, (2, 4, 5): {6: 1.0}},
        [3, 1, 8],
        {**FIRST, "penalties": Penalties("wu", 1.0)},
        {"tokens": [(2, 4, 5, 6)]},
    ),
    "stop first compares scores": (
        {(): {EOS: 0.4, 2: 0.6}},
        [5],
        {**FIRST, **AVERAGE},
        {"tokens": [(2,)]},
    ),
    "stop first waits for n_best beyond the beam": (
        {(): HALVES},
        [1, 2],
        FIRST,
        {"tokens": [(), (2,)]},
    ),
    "stop first compares averages of live prefixes": (
        GROWING,
        [2],
        {**FIRST, **AVERAGE},
        {"tokens": [(2, 3, 4, 5)]},
    ),
    "stop first compares rewards of live prefixes": (
        GROWING,
        [2],
        {**FIRST, **REWARD},
        {"tokens": [(2, 3, 4, 5)]},
    ),
    "stop first stops at a tie": (
        {(): {EOS: 0.25, 2: 0.5, 3: 0.25}, (2,): {EOS: 0.2, 3: 0.5, 4: 0.3}},
        [1, 2],
        FIRST,
        {"tokens": [(), (2,)], "rows": 2, "bound": 0.25},
    ),
    "stop optimal stops at a tie": (
        {(): {EOS: 0.5, 2: 0.5}},
        [5, 0],
        OPTIMAL,
        {"tokens": [()], "rows": 1, "bound": 0.5},
    ),
    "prefixes that are no candidates are counted as dropped": (
        {(): {2: 1.0}, (2,): {2: 0.3, 3: 0.25, 4: 0.2, 5: 0.15, 6: 0.1}},
        [1],
        {},
        {"tokens": [(2, 2)], "dropped": 4, "bound": 0.25, "level": "optimal", "support": 7},
    ),
    "hopeless prefixes leave the beam": (
        {(): {EOS: 0.2, 2: 0.7, 3: 0.1}, (2,): {4: 1.0}},
        [5],
        FIRST,
        {"rows": 3, "dropped": 1, "finished": 2, "level": "optimal", "bound": 0.1},
    ),
    "a better average comes later": (BETTER_LATER, [2, 1, 5], AVERAGE, {"tokens": [(3, 4, 5)]}),
    "hypotheses compete by score": (  # the empty one attends to nothing: its score is -inf
        {(): {EOS: 0.4, 2: 0.35, 3: 0.25}, (3,): {4: 1.0}},
        [5, 2, 5],
        COVERED,
        {"tokens": [(2,), (3, 4)], "score": math.log(0.35), "proven": 2},
    ),
    "a score above the probability ends the search": (
        {(): {EOS: 0.5, **dict.fromkeys(range(2, 7), 0.1)}},
        [5, 1, 3],
        {**OPTIMAL, **AVERAGE},
        {"rows": 1, "level": "optimal", "score": math.log(0.5) / 2},
    ),
    "what is banned is counted": (
        {(): {2: 0.5, 3: 0.5}, (2,): {3: 0.25, EOS: 0.75}},
        [5],
        {"constraints": Constraints(banned=frozenset({3}))},
        {"excluded": 0.625, "excluded_bound": 0.5, "mass": 0.375, "only": False},
    ),
    "a minimum length excludes ends": (
        {(): {EOS: 0.5, 2: 0.5}, (2,): {EOS: 0.9, 3: 0.1}},
        [5],
        {"constraints": Constraints(min_length=2)},
        {"excluded": 0.95, "tokens": [(2, 3)], "level": "exhaustive"},
    ),
    "a prefix that nothing may follow is not cut": (
        {(): {2: 1.0}},
        [5, 1, 1],
        {"constraints": Constraints(min_length=2)},
        {"unfinished": None, "level": "exhaustive", "excluded": 1, "gap": math.inf},
    ),
    **{
        f"the support gives the probability of {text}": (
            PAIRS,
            [5, 0],
            {"regex": text},
            {"finished": finished, "satisfied": (p, p), "excluded": 1 - p, "level": "exhaustive"},
        )
        for text, finished, p in (
            ("2 .*", 2, 0.5),
            (".* 2 .*", 3, 0.75),
            ("[^2]*", 1, 0.25),
            (".* 4 .*", 0, 0.0),
            ("2", 0, 0.0),
            (".*", 4, 1.0),
        )
    },
    "prefixes that decide count whole though nobody follows them": (
        PAIRS,
        [1],
        {"regex": "2 .*", **FIRST},
        {"satisfied": (0.5, 0.5), "level": "optimal"},
    ),
    "what another constraint excludes stays open": (
        PAIRS,
        [5, 0],
        {"regex": ".* 3", **BAN_3},
        {"finished": 0, "satisfied": (0, 0.75), "level": "exhaustive"},
    ),
    "unless it decides": (PAIRS, [5, 0], {"regex": ".* 3 .*", **BAN_3}, {"satisfied": (0.75,) * 2}),
    "the beam has room for prefixes that satisfy a constraint": (
        RARE,
        [2, 1, 3],
        {"regex": ".* 3 3 .*", **FIRST},
        {"tokens": [(3, 3, 3)]},
    ),
    "a beam takes the tokens that a constraint waits for": (
        {(): {2: 1.0}, (2,): WORDS},
        [1],
        {"regex": ".* 3 .*", **FIRST},
        {"tokens": [(2, 3)]},
    ),
    "a prefix that is cut is shown": (PAIRS, [5, 1, 1], {"regex": "2 .*"}, {"unfinished": (2,)}),
    "if it satisfies": (PAIRS, [5, 1, 1], {"regex": "2 . .*"}, {"unfinished": None}),
}

EXACT: dict[str, tuple[Model, list[int], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "only proven hypotheses count for the mass": (  # the empty one has it, two have more each
        {(): {EOS: 0.3, 2: 0.7}, (2,): {EOS: 0.5, 4: 0.5}},
        [5, 0],
        {},
        {"mass": 0.3},
        {"proven": 1, "rows": 2, "score": math.log(0.35)},
    ),
    "the whole support is listed where a part is rounded to all the mass": (
        {(): {EOS: 1.0, 2: 1e-9}},
        [5, 0],
        {},
        {},
        {"tokens": [(), (2,)], "level": "exhaustive", "strict": False},
    ),
    "the least probable prefixes are dropped where states are too many": (
        {(): {2: 0.5, 3: 0.3, 4: 0.2}, (2,): {4: 0.9, 5: 0.1}},
        [1, 0],
        {},
        {"budget": Budget(states=1, rows=1)},
        {"tokens": [(2, 4), (2, 5)], "bound": 0.3, "proven": 1},
    ),
    "prefixes that became hopeless in the frontier are dropped": (
        # The beam's (), (2,) and the exact search's (), (2,) and (3,), (4,).
        ONE_OF_FOUR,
        [1],
        {},
        {"budget": Budget(rows=2)},
        {"level": "optimal", "dropped": 1, "finished": 3, "bound": 0.18, "rows": 6, "support": 16},
    ),
    "under penalties the bound is not that of the beam": (
        # The beam has found (2,), with 0.4, but did not return it: (3, 4, 5) scores more.
        {(): {2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1}, (3,): {4: 1.0}, (3, 4): {5: 1.0}},
        [2, 1, 6],
        AVERAGE,
        {"budget": Budget(expansions=1)},
        {"finished": 2, "tokens": [(3, 4, 5)], "mass": 0.7, "bound": 0.4},
    ),
    "probability that the beam search excluded is kept": (
        # It has met (2, bos); the exact search ends before it does.
        TAIL,
        [1, 2],
        {},
        {"budget": Budget(expansions=1)},
        {"excluded": 0.54, "excluded_bound": 0.54},
    ),
    "the unfinished output is the most probable one that was cut": (
        {(): {2: 0.6, 3: 0.4}, (2,): {4: 0.5, 5: 0.5}, (3,): {4: 1.0}},
        [1, 1, 1],
        {},
        {},
        {"tokens": [], "unfinished": (2,), "level": "none", "truncated": 3, "bound": 0.4},
    ),
    "an exact search may cut a more probable prefix than the beam": (
        {(): {2: 0.6, 3: 0.4}, (2,): {4: 0.5, 5: 0.5}, (3,): {4: 1.0}}
        | {prefix: {6: 1.0} for prefix in ((2, 4), (2, 5), (3, 4))},
        [1, 1, 2],
        {},
        {},
        {"unfinished": (3, 4), "tokens": []},
    ),
    "prefixes that can only tie are dropped": (
        {(): {2: 0.4, 3: 0.3, 4: 0.3}, (2,): {EOS: 0.5, 5: 0.5}},
        [1],
        {},
        {"budget": Budget(rows=1)},
        {"tokens": [(3,)], "level": "optimal", "gap": 0, "bound": 0.3},
    ),
    **{
        f"a list of share {mass} has an output of a probability that sums of others hide": (
            {(): {2: 0.3, 4: 0.7, 3: 1e-9}, (3,): {3: 1.0}},
            [5, 0],
            {"regex": ".* 3 3 .*"},
            {"budget": Budget(rows=1), "mass": mass},
            {"tokens": [(3, 3)], "level": "exhaustive"},
        )
        for mass in (0.9, 1.0)
    },
    "a list of an impossible constraint may not end at rounding": (
        {(): {2: 0.3, 4: 0.7, 3: 1e-9}, (3,): {3: 1.0}},
        [5, 0],
        {"regex": ".* 3 3 .*"},
        {"budget": Budget(expansions=3, rows=1)},
        {"tokens": [], "satisfied": (0, 1e-5), "level": "none"},
    ),
    "a list ends at its share of what may satisfy the constraint": (
        PAIRS,  # a quarter is half of the half that begins with 2
        [5, 0],
        {"regex": "2 .*"},
        {"budget": Budget(rows=1), "mass": 0.5},
        {"mass": 0.25},
    ),
    "what the beam knows of the constraint is kept": (
        # A beam of one drops 3 and 4; it has seen that 2 is mostly followed by a violation.
        {(): {2: 0.5, 3: 0.3, 4: 0.2}, (2,): {3: 0.9, 4: 0.1}, (3,): {3: 1.0}, (4,): {4: 1.0}},
        [1, 1, 3],
        {"regex": "2 4 | 3 3 | 4 4"},
        {"budget": Budget(rows=1, expansions=1)},
        {"satisfied": (0.05, 0.55)},
    ),
}


def request(sizes: list[int], options: dict[str, Any]) -> tuple[SearchConfig, Automaton | None]:
    """Return the configuration and the automaton of a case."""
    others = {name: value for name, value in options.items() if name != "regex"}
    regex = options.get("regex")
    automaton = None if regex is None else compiled(parse_expression(regex), [2, 3, 4], EOS)
    return SearchConfig(*sizes, **others), automaton


def check(result: SearchResult, expected: dict[str, Any]) -> None:
    """Compare parts of a result."""
    certificate, hypotheses = result.certificate, result.hypotheses
    parts = {
        "tokens": [hypothesis.tokens for hypothesis in hypotheses],
        "score": hypotheses[0].score if hypotheses else None,
        "unfinished": result.unfinished.tokens if result.unfinished else None,
        "excluded_bound": math.exp(certificate.log_excluded_bound),
    }
    for name, value in expected.items():
        source = certificate if hasattr(certificate, name) else result
        got = parts[name] if name in parts else getattr(source, name)
        exact = isinstance(value, (list, str)) or name == "unfinished"
        assert got == (value if exact else pytest.approx(value)), name


@pytest.mark.parametrize("case", BEAM.values(), ids=list(BEAM))
def test_beam_search(case: Any) -> None:
    model, sizes, options, expected = case
    config, automaton = request(sizes, options)
    stepper = TableStepper(7, attention=True)
    (result,) = beam_search(stepper, [Fixed(model)], config, automata=[automaton])
    check(result, {**expected, "rows": stepper.rows})


@pytest.mark.parametrize("case", EXACT.values(), ids=list(EXACT))
def test_exact_search(case: Any) -> None:
    model, sizes, options, given, expected = case
    stepper = TableStepper(7)
    config, automaton = request(sizes, options)
    result = exact_search(stepper, [Fixed(model)], config, automaton=automaton, **given)
    check(result, {**expected, "rows": stepper.rows})


def test_prefixes_of_some_sentences_do_not_touch_the_others() -> None:
    models = [Fixed({(): {2: 0.6, EOS: 0.4}, (2,): {EOS: 1.0}})] * 3
    impossible, possible, free = beam_search(
        TableStepper(7), models, SearchConfig(5, 0, 2), [(2, 3), (2,), ()]
    )
    nothing = {"tokens": [], "level": "exhaustive", "excluded": 1, "truncated": 0, "gap": math.inf}
    check(impossible, {**nothing, "unfinished": None})
    check(possible, {"tokens": [(2,)], "excluded": 0.4})
    check(free, {"tokens": [(2,), ()], "excluded": 0})


@pytest.mark.parametrize("options", [{"stop": "first"}, {"n_best": 0}], ids=str)
def test_a_probability_rounded_above_one_does_not_break_the_bound(options: Any) -> None:
    class Rounded(Fixed):
        def log_probs(self, prefix: tuple[int, ...]) -> list[float]:
            return [value + 1e-7 for value in super().log_probs(prefix)]

    model = Rounded({(): {2: 1.0}, (2,): {2: 0.5, 3: 0.5}})
    (result,) = beam_search(TableStepper(7), [model], SearchConfig(1, **options))
    assert result.hypotheses[0].log_prob <= result.certificate.log_bound
    assert result.certificate.level == "optimal"


def test_of_equal_scores_the_more_probable_is_first() -> None:
    """No position is attended to, so the coverage penalty of every output is infinite."""

    class Blind(TableStepper):
        def step(self, state: Any, tokens: torch.Tensor) -> Step:
            found = super().step(state, tokens)
            return replace(found, attention=torch.zeros_like(found.attention))

    model = Fixed({(): {EOS: 0.2, 2: 0.3, 3: 0.5}})
    for n_best, expected in ((1, [(3,)]), (3, [(3,), (2,), ()])):
        config = SearchConfig(5, n_best, 3, penalties=COVERED["penalties"])
        (result,) = beam_search(Blind(7, attention=True), [model], config)
        assert [hypothesis.tokens for hypothesis in result.hypotheses] == expected


def test_a_probability_of_satisfying_is_at_most_one() -> None:
    more = math.nextafter(1.0, 2.0)
    for proof in (Proof(satisfied=more), Proof(satisfied=more, dropped=1)):
        assert proof.certificate([], -1.0, True).satisfied == (1.0, 1.0)


@pytest.mark.parametrize(
    ("beam", "end", "level", "found", "bound"),
    [
        (1, 0.7, "optimal", [((A,), 0.42)], 0.4),
        (1, 0.6, "none", [((A,), 0.36)], 0.4),
        (2, 0.7, "exhaustive", [((A,), 0.42), ((B,), 0.4), ((A, B), 0.18)], 0.0),
    ],
)
def test_the_example_of_the_documentation(
    beam: int, end: float, level: str, found: list[tuple[tuple[int, ...], float]], bound: float
) -> None:
    """Docs/certificates.md searches this model by hand."""
    model: Model = {(): {A: 0.6, B: 0.4}, (A,): {EOS: end, B: 1 - end}}
    (result,) = beam_search(TableStepper(7), [Fixed(model)], SearchConfig(beam, len(found)))
    assert result.certificate.level == level
    assert result.certificate.bound == pytest.approx(bound)
    assert [(h.tokens, pytest.approx(h.prob)) for h in result.hypotheses] == found
