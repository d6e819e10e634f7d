"""Cases of an exact search."""

import math

from onmt_entmax.search import Budget, SearchConfig
from tests.search.cases import AVERAGE, PAIRS, Case, Model
from tests.search.tables import BOS, EOS

ONE_OF_FOUR: Model = {
    (): {2: 0.3, 3: 0.28, 4: 0.24, 5: 0.18},
    (2,): {EOS: 0.5, BOS: 0.5},
    (3,): {EOS: 0.75, BOS: 0.25},
    (4,): {EOS: 0.5, BOS: 0.5},
}
HIDDEN: Model = {(): {2: 0.3, 4: 0.7, 3: 1e-9}, (3,): {3: 1.0}}  # (3, 3) has 1e-9
MOSTLY_EXCLUDED: Model = {  # the start symbol, which no output may have, is likely after 2
    (): {2: 0.6, EOS: 0.4},
    (2,): {BOS: 0.9, 3: 0.06, 4: 0.04},
    (2, 3): {EOS: 0.5, 5: 0.5},
}
TWO_LEVELS: Model = {(): {2: 0.6, 3: 0.4}, (2,): {4: 0.5, 5: 0.5}, (3,): {4: 1.0}}

EXACT: dict[str, Case] = {
    "only proven hypotheses count for the mass": Case(
        # The empty one has it, two have more each.
        {(): {EOS: 0.3, 2: 0.7}, (2,): {EOS: 0.5, 4: 0.5}},
        {"proven": 1, "rows": 2, "score": math.log(0.35)},
        SearchConfig(n_best=0),
        mass=0.3,
    ),
    "the whole support is listed where a part is rounded to all the mass": Case(
        {(): {EOS: 1.0, 2: 1e-9}},
        {"tokens": [(), (2,)], "level": "exhaustive", "strict": False},
        SearchConfig(n_best=0),
    ),
    "the least probable prefixes are dropped where states are too many": Case(
        {(): {2: 0.5, 3: 0.3, 4: 0.2}, (2,): {4: 0.9, 5: 0.1}},
        {"tokens": [(2, 4), (2, 5)], "bound": 0.3, "proven": 1},
        SearchConfig(1, n_best=0),
        budget=Budget(states=1, rows=1),
    ),
    "prefixes that became hopeless in the frontier are dropped": Case(
        # Rows are the beam's (), (2,) and the exact search's (), (2,) and (3,), (4,).
        ONE_OF_FOUR,
        {"level": "optimal", "dropped": 1, "finished": 3, "bound": 0.18, "rows": 6, "support": 16},
        SearchConfig(1),
        budget=Budget(rows=2),
    ),
    "under penalties the bound is not that of the beam": Case(
        # The beam has found (2,), with 0.4, but did not return it: (3, 4, 5) scores more.
        {(): {2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1}, (3,): {4: 1.0}, (3, 4): {5: 1.0}},
        {"finished": 2, "tokens": [(3, 4, 5)], "mass": 0.7, "bound": 0.4},
        SearchConfig(2, max_length=6, penalties=AVERAGE),
        budget=Budget(expansions=1),
    ),
    "probability that the beam search excluded is kept": Case(
        # The beam has met the start symbol after 2; the exact search ends before it does.
        MOSTLY_EXCLUDED,
        {"excluded": 0.54, "excluded_bound": 0.54},
        SearchConfig(1, n_best=2),
        budget=Budget(expansions=1),
    ),
    "the unfinished output is the most probable one that was cut": Case(
        TWO_LEVELS,
        {"tokens": [], "unfinished": (2,), "level": "none", "truncated": 3, "bound": 0.4},
        SearchConfig(1, max_length=1),
    ),
    "an exact search may cut a more probable prefix than the beam": Case(
        {**TWO_LEVELS, (2, 4): {6: 1.0}, (2, 5): {6: 1.0}, (3, 4): {6: 1.0}},
        {"unfinished": (3, 4), "tokens": []},
        SearchConfig(1, max_length=2),
    ),
    "prefixes that can only tie are dropped": Case(
        {(): {2: 0.4, 3: 0.3, 4: 0.3}, (2,): {EOS: 0.5, 5: 0.5}},
        {"tokens": [(3,)], "level": "optimal", "gap": 0, "bound": 0.3},
        SearchConfig(1),
        budget=Budget(rows=1),
    ),
    **{
        f"a list of share {mass} has an output of a probability that sums of others hide": Case(
            HIDDEN,
            {"tokens": [(3, 3)], "level": "exhaustive"},
            SearchConfig(n_best=0),
            ".* 3 3 .*",
            Budget(rows=1),
            mass,
        )
        for mass in (0.9, 1.0)
    },
    "a list of an impossible constraint may not end at rounding": Case(
        HIDDEN,
        {"tokens": [], "satisfied": (0, 1e-5), "level": "none"},
        SearchConfig(n_best=0),
        ".* 3 3 .*",
        Budget(expansions=3, rows=1),
    ),
    "a list ends at its share of what may satisfy the constraint": Case(
        PAIRS,  # a quarter is half of the half that begins with 2
        {"mass": 0.25},
        SearchConfig(n_best=0),
        "2 .*",
        Budget(rows=1),
        mass=0.5,
    ),
    "the exact search keeps what the beam search found of the constraint": Case(
        # A beam of one drops 3 and 4; it has seen that 2 is mostly followed by a violation.
        {(): {2: 0.5, 3: 0.3, 4: 0.2}, (2,): {3: 0.9, 4: 0.1}, (3,): {3: 1.0}, (4,): {4: 1.0}},
        {"satisfied": (0.05, 0.55)},
        SearchConfig(1, max_length=3),
        "2 4 | 3 3 | 4 4",
        Budget(rows=1, expansions=1),
    ),
}
