"""Cases of a beam search under constraints: what they exclude, and what satisfies a regex.

`excluded` is the probability of all outputs that a constraint excludes. `satisfied` has a lower and
an upper bound of the probability that an output matches the regex.
"""

import math

from onmt_entmax.search import Constraints, SearchConfig
from tests.search.cases import PAIRS, Case, Model
from tests.search.tables import EOS

# The only output that begins with 3 is (3, 3, 3), with probability 0.001. The others begin with 2,
# and from the second step on, more of their prefixes than a beam of two holds are more probable.
RARE: Model = {
    (): {2: 0.999, 3: 0.001},
    (2,): dict.fromkeys((2, 3, 4), 1 / 3),
    **{(2, i): dict.fromkeys((2, 3, 4, 5, 6), 0.2) for i in (2, 3, 4)},
    **{(2, i, j): {EOS: 0.5, 5: 0.5} for i in (2, 3, 4) for j in (2, 3, 4, 5, 6)},
    (3,): {3: 1.0},
    (3, 3): {3: 1.0},
}
NO_3 = Constraints(banned=frozenset({3}))
TWO_TOKENS = Constraints(min_length=2)

# By regex, how many of the four equally probable outputs of `PAIRS` match.
MATCHING_PAIRS = {
    "2 .*": 2,
    ".* 2 .*": 3,
    "[^2]*": 1,
    ".* 4 .*": 0,
    "2": 0,
    ".*": 4,
}

EXCLUDING: dict[str, Case] = {
    "banned tokens are counted as excluded": Case(
        # The prefixes (3,), with 0.5, and (2, 3), with 0.5 * 0.25.
        model={(): {2: 0.5, 3: 0.5}, (2,): {3: 0.25, EOS: 0.75}},
        config=SearchConfig(constraints=NO_3),
        expected={
            "excluded": 0.5 + 0.125,
            "excluded_bound": 0.5,
            "mass": 0.375,
            "only": False,
        },
    ),
    "a minimum length excludes ends": Case(
        # The outputs (), with 0.5, and (2,), with 0.5 * 0.9.
        model={(): {EOS: 0.5, 2: 0.5}, (2,): {EOS: 0.9, 3: 0.1}},
        config=SearchConfig(constraints=TWO_TOKENS),
        expected={"excluded": 0.5 + 0.45, "tokens": [(2, 3)], "level": "exhaustive"},
    ),
    "a prefix that nothing may follow is not cut": Case(
        # (2,) has the longest length, so it can only end, and it is too short to end.
        model={(): {2: 1.0}},
        config=SearchConfig(max_length=1, constraints=TWO_TOKENS),
        expected={"unfinished": None, "level": "exhaustive", "excluded": 1, "gap": math.inf},
    ),
}

SATISFYING: dict[str, Case] = {
    **{
        f"the support gives the probability of {regex}": Case(
            model=PAIRS,
            config=SearchConfig(n_best=0),
            regex=regex,
            expected={
                "finished": matching,
                "satisfied": (matching / 4, matching / 4),
                "excluded": 1 - matching / 4,
                "level": "exhaustive",
            },
        )
        for regex, matching in MATCHING_PAIRS.items()
    },
    "a prefix that decides the constraint counts with all its probability": Case(
        # The beam of one follows only one of (2, 2) and (2, 3), but both match, as (2,) decides.
        model=PAIRS,
        config=SearchConfig(beam_size=1, stop="first"),
        regex="2 .*",
        expected={"satisfied": (0.5, 0.5), "level": "optimal"},
    ),
    "an excluded prefix that does not decide the regex leaves the bounds apart": Case(
        # (2, 2), with a quarter, does not match. What follows (3,) and (2, 3), which are excluded,
        # may match or not.
        model=PAIRS,
        config=SearchConfig(n_best=0, constraints=NO_3),
        regex=".* 3",
        expected={"finished": 0, "satisfied": (0, 0.75), "level": "exhaustive"},
    ),
    "an excluded prefix that decides the regex leaves the bounds equal": Case(
        # The excluded prefixes (3,) and (2, 3) match, whatever follows.
        model=PAIRS,
        config=SearchConfig(n_best=0, constraints=NO_3),
        regex=".* 3 .*",
        expected={"satisfied": (0.75, 0.75)},
    ),
    "the beam keeps improbable prefixes that can still match": Case(
        model=RARE,
        config=SearchConfig(beam_size=2, max_length=3, stop="first"),
        regex=".* 3 3 .*",
        expected={"tokens": [(3, 3, 3)]},
    ),
    "a beam of one takes an improbable token that the regex needs": Case(
        # 3 is the least probable of five tokens after (2,).
        model={(): {2: 1.0}, (2,): {2: 0.4, 4: 0.3, 5: 0.2, 6: 0.09, 3: 0.01}},
        config=SearchConfig(beam_size=1, stop="first"),
        regex=".* 3 .*",
        expected={"tokens": [(2, 3)]},
    ),
    "a cut prefix that matches is the unfinished output": Case(
        model=PAIRS,
        config=SearchConfig(max_length=1),
        regex="2 .*",
        expected={"unfinished": (2,)},
    ),
    "a cut prefix that does not match yet is no unfinished output": Case(
        model=PAIRS,
        config=SearchConfig(max_length=1),
        regex="2 . .*",
        expected={"unfinished": None},
    ),
}
