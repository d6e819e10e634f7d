"""Cases of an exact search, which begins with a beam search and follows what that has dropped."""

import math

from onmt_entmax.search import Budget, SearchConfig
from tests.search.cases import AVERAGE, PAIRS, Case, Model
from tests.search.tables import BOS, EOS

# (3, 3) has 1e-9, which a sum with 1 in float32 does not show.
HIDDEN: Model = {(): {2: 0.3, 4: 0.7, 3: 1e-9}, (3,): {3: 1.0}}
# Outputs of two tokens: (2, 4) and (2, 5) with 0.3 each, (3, 4) with 0.4.
TWO_LEVELS: Model = {(): {2: 0.6, 3: 0.4}, (2,): {4: 0.5, 5: 0.5}, (3,): {4: 1.0}}

EXACT: dict[str, Case] = {
    "only proven hypotheses count for the mass": Case(
        # The empty one has it, two have more each.
        model={(): {EOS: 0.3, 2: 0.7}, (2,): {EOS: 0.5, 4: 0.5}},
        config=SearchConfig(n_best=0),
        mass=0.3,
        expected={"proven": 1, "rows": 2, "score": math.log(0.7 * 0.5)},
    ),
    "the whole support is listed where a part is rounded to all the mass": Case(
        model={(): {EOS: 1.0, 2: 1e-9}},
        config=SearchConfig(n_best=0),
        expected={"tokens": [(), (2,)], "level": "exhaustive", "strict": False},
    ),
    "the least probable prefixes are dropped where states are too many": Case(
        # The only state that may be kept is that of (2,); (3,) is the bound.
        model={(): {2: 0.5, 3: 0.3, 4: 0.2}, (2,): {4: 0.9, 5: 0.1}},
        config=SearchConfig(beam_size=1, n_best=0),
        budget=Budget(states=1, rows=1),
        expected={"tokens": [(2, 4), (2, 5)], "bound": 0.3, "proven": 1},
    ),
    "prefixes that became hopeless in the frontier are dropped": Case(
        # The start symbol, which no output may have, leaves (2,) 0.15, (3,) 0.21 and (4,) 0.12.
        # (5,), with 0.18, is the bound.
        model={
            (): {2: 0.3, 3: 0.28, 4: 0.24, 5: 0.18},
            (2,): {EOS: 0.5, BOS: 0.5},
            (3,): {EOS: 0.75, BOS: 0.25},
            (4,): {EOS: 0.5, BOS: 0.5},
        },
        config=SearchConfig(beam_size=1),
        budget=Budget(rows=2),
        expected={
            "level": "optimal",
            "dropped": 1,
            "finished": 3,
            "bound": 0.18,
            # The beam's (), (2,) and the exact search's (), (2,) and (3,), (4,).
            "rows": 2 + 4,
            # Four tokens of (), twice; two of each other prefix.
            "support": 2 * 4 + 4 * 2,
        },
    ),
    "under penalties the bound is not that of the beam": Case(
        # The beam has found (2,), with 0.4, but did not return it: (3, 4, 5) scores more.
        model={(): {2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1}, (3,): {4: 1.0}, (3, 4): {5: 1.0}},
        config=SearchConfig(beam_size=2, max_length=6, penalties=AVERAGE),
        budget=Budget(expansions=1),
        expected={"finished": 2, "tokens": [(3, 4, 5)], "mass": 0.4 + 0.3, "bound": 0.4},
    ),
    "probability that the beam search excluded is kept": Case(
        # The beam has met the start symbol, which no output may have, after 2, with 0.6 * 0.9. The
        # exact search ends before it does.
        model={
            (): {2: 0.6, EOS: 0.4},
            (2,): {BOS: 0.9, 3: 0.06, 4: 0.04},
            (2, 3): {EOS: 0.5, 5: 0.5},
        },
        config=SearchConfig(beam_size=1, n_best=2),
        budget=Budget(expansions=1),
        expected={"excluded": 0.54, "excluded_bound": 0.54},
    ),
    "the unfinished output is the most probable one that was cut": Case(
        model=TWO_LEVELS,
        config=SearchConfig(beam_size=1, max_length=1),
        expected={
            "tokens": [],
            "unfinished": (2,),
            "level": "none",
            "truncated": 3,
            "bound": 0.4,
        },
    ),
    "an exact search may cut a more probable prefix than the beam": Case(
        # All outputs have three tokens. A beam of one meets (2, 4) or (2, 5).
        model={**TWO_LEVELS, (2, 4): {6: 1.0}, (2, 5): {6: 1.0}, (3, 4): {6: 1.0}},
        config=SearchConfig(beam_size=1, max_length=2),
        expected={"unfinished": (3, 4), "tokens": []},
    ),
    "prefixes that can only tie are dropped": Case(
        # (3,) ends with 0.3, and (4,) can have no more.
        model={(): {2: 0.4, 3: 0.3, 4: 0.3}, (2,): {EOS: 0.5, 5: 0.5}},
        config=SearchConfig(beam_size=1),
        budget=Budget(rows=1),
        expected={"tokens": [(3,)], "level": "optimal", "gap": 0, "bound": 0.3},
    ),
    **{
        f"a list of share {mass} has an output of a probability that sums of others hide": Case(
            model=HIDDEN,
            config=SearchConfig(n_best=0),
            regex=".* 3 3 .*",
            budget=Budget(rows=1),
            mass=mass,
            expected={"tokens": [(3, 3)], "level": "exhaustive"},
        )
        for mass in (0.9, 1.0)
    },
    "a list of an impossible constraint may not end at rounding": Case(
        # Three prefixes are computed, and (3,) is not among them: all other probability violates
        # the expression, but what a sum of floats may hide, `certificate.ROUNDING`, is open.
        model=HIDDEN,
        config=SearchConfig(n_best=0),
        regex=".* 3 3 .*",
        budget=Budget(expansions=3, rows=1),
        expected={"tokens": [], "satisfied": (0, 1e-5), "level": "none"},
    ),
    "a list ends at its share of what may satisfy the constraint": Case(
        # A quarter is half of the half that begins with 2.
        model=PAIRS,
        config=SearchConfig(n_best=0),
        regex="2 .*",
        budget=Budget(rows=1),
        mass=0.5,
        expected={"mass": 0.25},
    ),
    "the exact search keeps what the beam search found of the constraint": Case(
        # A beam of one drops 3 and 4, with 0.5, and follows 2: of its 0.5, a tenth satisfies the
        # expression. The exact search ends before it knows more.
        model={
            (): {2: 0.5, 3: 0.3, 4: 0.2},
            (2,): {3: 0.9, 4: 0.1},
            (3,): {3: 1.0},
            (4,): {4: 1.0},
        },
        config=SearchConfig(beam_size=1, max_length=3),
        regex="2 4 | 3 3 | 4 4",
        budget=Budget(rows=1, expansions=1),
        expected={"satisfied": (0.05, 0.05 + 0.5)},
    ),
}
