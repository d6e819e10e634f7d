"""Cases of a beam search."""

import math

from onmt_entmax.search import Constraints, Penalties, SearchConfig
from tests.search.cases import AVERAGE, PAIRS, Case, Model
from tests.search.tables import EOS

HALF_ENDS: Model = {(): {EOS: 0.5, 2: 0.3, 3: 0.2}}
GROWING: Model = {  # each token makes the average better
    (): {EOS: 0.3, 2: 0.7},
    (2,): {3: 1.0},
    (2, 3): {4: 1.0},
    (2, 3, 4): {EOS: 0.4, 5: 0.6},
}
BETTER_LATER: Model = {  # (3, 4, 5) has the best average, and begins with the second best token
    (): {2: 0.5, 3: 0.45, 4: 0.05},
    (2,): {EOS: 0.96, 4: 0.04},
    (3,): {4: 1.0},
    (3, 4): {5: 1.0},
}
RARE: Model = {  # most outputs begin with 2, and there are many; one begins with 3, 3
    (): {2: 0.999, 3: 0.001},
    (2,): dict.fromkeys((2, 3, 4), 1 / 3),
    **{(2, i): dict.fromkeys((2, 3, 4, 5, 6), 0.2) for i in (2, 3, 4)},
    **{(2, i, j): {EOS: 0.5, 5: 0.5} for i in (2, 3, 4) for j in (2, 3, 4, 5, 6)},
    (3,): {3: 1.0},
    (3, 3): {3: 1.0},
}

COVERED = Penalties(coverage_penalty="wu", beta=1.0)
REWARD = Penalties(length_reward=0.5, length_ratio=10.0)
NO_3 = Constraints(banned=frozenset({3}))
TWO_TOKENS = Constraints(min_length=2)

BEAM: dict[str, Case] = {
    "one live prefix costs one row": Case(
        {(): {2: 1.0}, (2,): {3: 1.0}},
        {"tokens": [(2, 3)], "rows": 3, "support": 3, "strict": True, "mass": 1, "bound": 0},
    ),
    "a single output is the only one": Case(
        {(): {2: 1.0}}, {"level": "exhaustive", "finished": 1, "only": True}
    ),
    "one of several outputs is not the only one": Case(
        {(): {2: 0.6, EOS: 0.4}},
        {"level": "exhaustive", "finished": 2, "only": False},
        SearchConfig(2),
    ),
    "the only finished output is not the only one if others were cut": Case(
        {(): {EOS: 0.5, 2: 0.5}, (2,): {2: 1.0}},
        {"level": "optimal", "finished": 1, "only": False},
        SearchConfig(max_length=1),
    ),
    "finished hypotheses take no place in the beam": Case(
        {(): {EOS: 0.5, 2: 0.5}, (2,): {EOS: 0.5, 3: 0.5}, (2, 3): {EOS: 0.5, 4: 0.5}},
        {"finished": 4, "level": "exhaustive", "mass": 1, "strict": False, "gap": math.inf},
        SearchConfig(1, n_best=0),
    ),
    "two hypotheses fit a beam of two": Case(
        {(): {2: 0.6, EOS: 0.4}},
        {"level": "exhaustive", "strict": True, "tokens": [(2,)]},
        SearchConfig(2, stop="optimal"),
    ),
    "a tie is optimal, and a cut prefix is counted": Case(
        {(): {EOS: 0.5, 2: 0.5}, (2,): {2: 1.0}},
        {
            "level": "optimal",
            "gap": 0,
            "truncated": 1,
            "dropped": 0,
            "proven": 1,
            "unfinished": None,
        },
        SearchConfig(1, max_length=1),
    ),
    "where nothing finishes the best prefix is unfinished": Case(
        {(): {2: 0.6, 3: 0.4}, (2,): {2: 1.0}, (3,): {3: 0.5, 2: 0.5}},
        {"tokens": [], "level": "none", "unfinished": (2,), "bound": 0.6, "gap": -math.inf},
        SearchConfig(max_length=1),
    ),
    "ranks are proven as far as the bound reaches": Case(
        {(): {EOS: 0.4, 2: 0.35, 3: 0.25}, (2,): {EOS: 0.9, 4: 0.1}},
        {"tokens": [(), (2,), (2, 4)], "bound": 0.25, "level": "optimal", "proven": 2},
        SearchConfig(1, n_best=3),
    ),
    "prefixes that cannot win are dropped": Case(
        HALF_ENDS,
        {"rows": 1, "dropped": 2, "bound": 0.3, "gap": math.log(0.5 / 0.3)},
        SearchConfig(stop="optimal"),
    ),
    "prefixes that cannot win are kept if more outputs are wanted": Case(
        HALF_ENDS,
        {"rows": 3, "dropped": 0, "proven": 2, "tokens": [(), (2,)]},
        SearchConfig(n_best=2, stop="optimal"),
    ),
    "stop first waits for n_best": Case(
        HALF_ENDS, {"tokens": [(), (2,), (3,)]}, SearchConfig(n_best=3, stop="first")
    ),
    "stop first waits for as many as the beam has": Case(
        {(): {EOS: 0.5, 2: 0.5}, (2,): {4: 0.7, EOS: 0.3}, (2, 4): {5: 1.0}, (2, 4, 5): {6: 1.0}},
        {"tokens": [(2, 4, 5, 6)]},
        SearchConfig(3, max_length=8, stop="first", penalties=Penalties("wu", 1.0)),
    ),
    "stop first compares scores": Case(
        {(): {EOS: 0.4, 2: 0.6}}, {"tokens": [(2,)]}, SearchConfig(stop="first", penalties=AVERAGE)
    ),
    "stop first waits for n_best beyond the beam": Case(
        HALF_ENDS, {"tokens": [(), (2,)]}, SearchConfig(1, n_best=2, stop="first")
    ),
    "stop first compares averages of live prefixes": Case(
        GROWING, {"tokens": [(2, 3, 4, 5)]}, SearchConfig(2, stop="first", penalties=AVERAGE)
    ),
    "stop first compares rewards of live prefixes": Case(
        GROWING, {"tokens": [(2, 3, 4, 5)]}, SearchConfig(2, stop="first", penalties=REWARD)
    ),
    "stop first stops at a tie": Case(
        {(): {EOS: 0.25, 2: 0.5, 3: 0.25}, (2,): {EOS: 0.2, 3: 0.5, 4: 0.3}},
        {"tokens": [(), (2,)], "rows": 2, "bound": 0.25},
        SearchConfig(1, n_best=2, stop="first"),
    ),
    "stop optimal stops at a tie": Case(
        {(): {EOS: 0.5, 2: 0.5}},
        {"tokens": [()], "rows": 1, "bound": 0.5},
        SearchConfig(n_best=0, stop="optimal"),
    ),
    "prefixes that are no candidates are counted as dropped": Case(
        {(): {2: 1.0}, (2,): {2: 0.3, 3: 0.25, 4: 0.2, 5: 0.15, 6: 0.1}},
        {"tokens": [(2, 2)], "dropped": 4, "bound": 0.25, "level": "optimal", "support": 7},
        SearchConfig(1),
    ),
    "hopeless prefixes leave the beam": Case(
        {(): {EOS: 0.2, 2: 0.7, 3: 0.1}, (2,): {4: 1.0}},
        {"rows": 3, "dropped": 1, "finished": 2, "level": "optimal", "bound": 0.1},
        SearchConfig(stop="first"),
    ),
    "a better average comes later": Case(
        BETTER_LATER, {"tokens": [(3, 4, 5)]}, SearchConfig(2, max_length=5, penalties=AVERAGE)
    ),
    "hypotheses compete by score": Case(
        # The empty one attends to nothing: its score is -inf.
        {(): {EOS: 0.4, 2: 0.35, 3: 0.25}, (3,): {4: 1.0}},
        {"tokens": [(2,), (3, 4)], "score": math.log(0.35), "proven": 2},
        SearchConfig(n_best=2, max_length=5, stop="optimal", penalties=COVERED),
    ),
    "a score above the probability ends the search": Case(
        {(): {EOS: 0.5, **dict.fromkeys(range(2, 7), 0.1)}},
        {"rows": 1, "level": "optimal", "score": math.log(0.5) / 2},
        SearchConfig(max_length=3, stop="optimal", penalties=AVERAGE),
    ),
    "banned tokens are counted as excluded": Case(
        {(): {2: 0.5, 3: 0.5}, (2,): {3: 0.25, EOS: 0.75}},
        {"excluded": 0.625, "excluded_bound": 0.5, "mass": 0.375, "only": False},
        SearchConfig(constraints=NO_3),
    ),
    "a minimum length excludes ends": Case(
        {(): {EOS: 0.5, 2: 0.5}, (2,): {EOS: 0.9, 3: 0.1}},
        {"excluded": 0.95, "tokens": [(2, 3)], "level": "exhaustive"},
        SearchConfig(constraints=TWO_TOKENS),
    ),
    "a prefix that nothing may follow is not cut": Case(
        {(): {2: 1.0}},
        {"unfinished": None, "level": "exhaustive", "excluded": 1, "gap": math.inf},
        SearchConfig(max_length=1, constraints=TWO_TOKENS),
    ),
    **{
        f"the support gives the probability of {regex}": Case(
            PAIRS,
            {"finished": finished, "satisfied": (p, p), "excluded": 1 - p, "level": "exhaustive"},
            SearchConfig(n_best=0),
            regex,
        )
        for regex, finished, p in (
            ("2 .*", 2, 0.5),
            (".* 2 .*", 3, 0.75),
            ("[^2]*", 1, 0.25),
            (".* 4 .*", 0, 0.0),
            ("2", 0, 0.0),
            (".*", 4, 1.0),
        )
    },
    "a prefix that decides the constraint counts whole, followed or not": Case(
        PAIRS,
        {"satisfied": (0.5, 0.5), "level": "optimal"},
        SearchConfig(1, stop="first"),
        "2 .*",
    ),
    "satisfaction is open where another constraint excludes outputs": Case(
        PAIRS,
        {"finished": 0, "satisfied": (0, 0.75), "level": "exhaustive"},
        SearchConfig(n_best=0, constraints=NO_3),
        ".* 3",
    ),
    "satisfaction is known where the excluded prefix decides it": Case(
        PAIRS,
        {"satisfied": (0.75, 0.75)},
        SearchConfig(n_best=0, constraints=NO_3),
        ".* 3 .*",
    ),
    "the beam has room for prefixes that satisfy a constraint": Case(
        RARE, {"tokens": [(3, 3, 3)]}, SearchConfig(2, max_length=3, stop="first"), ".* 3 3 .*"
    ),
    "a beam takes the tokens that a constraint waits for": Case(
        {(): {2: 1.0}, (2,): {2: 0.4, 4: 0.3, 5: 0.2, 6: 0.09, 3: 0.01}},
        {"tokens": [(2, 3)]},
        SearchConfig(1, stop="first"),
        ".* 3 .*",
    ),
    "a cut prefix that satisfies the constraint is shown": Case(
        PAIRS, {"unfinished": (2,)}, SearchConfig(max_length=1), "2 .*"
    ),
    "a cut prefix that does not satisfy the constraint yet is not shown": Case(
        PAIRS, {"unfinished": None}, SearchConfig(max_length=1), "2 . .*"
    ),
}
