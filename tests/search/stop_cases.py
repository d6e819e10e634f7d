"""Cases of a beam search that may end early: what it waits for, and what it drops."""

import math

from onmt_entmax.search import Penalties, SearchConfig
from tests.search.cases import AVERAGE, Case, Model
from tests.search.tables import EOS

HALF_ENDS: Model = {(): {EOS: 0.5, 2: 0.3, 3: 0.2}}
# Each token makes the average better: the outputs (), (2, 3, 4) and (2, 3, 4, 5) have the
# probabilities 0.3, 0.28 and 0.42, and of log-probabilities the averages -0.60, -0.25 and -0.14.
GROWING: Model = {
    (): {EOS: 0.3, 2: 0.7},
    (2,): {3: 1.0},
    (2, 3): {4: 1.0},
    (2, 3, 4): {EOS: 0.4, 5: 0.6},
}
# So large a ratio that all tokens of a short output are rewarded.
REWARD = Penalties(length_reward=0.5, length_ratio=10.0)

STOP: dict[str, Case] = {
    # --- stop: optimal -----------------------------------------------------------------------
    "prefixes that cannot win are dropped": Case(
        # After the row of () it has ended with 0.5; (2,) and (3,) have less.
        model=HALF_ENDS,
        config=SearchConfig(stop="optimal"),
        expected={"rows": 1, "dropped": 2, "bound": 0.3, "gap": math.log(0.5 / 0.3)},
    ),
    "prefixes that cannot win are kept if more outputs are wanted": Case(
        model=HALF_ENDS,
        config=SearchConfig(n_best=2, stop="optimal"),
        expected={"rows": 3, "dropped": 0, "proven": 2, "tokens": [(), (2,)]},
    ),
    "stop optimal stops at a tie": Case(
        model={(): {EOS: 0.5, 2: 0.5}},
        config=SearchConfig(n_best=0, stop="optimal"),
        expected={"tokens": [()], "rows": 1, "bound": 0.5},
    ),
    # --- stop: first -------------------------------------------------------------------------
    "stop first waits for n_best": Case(
        model=HALF_ENDS,
        config=SearchConfig(n_best=3, stop="first"),
        expected={"tokens": [(), (2,), (3,)]},
    ),
    "stop first waits for n_best beyond the beam": Case(
        model=HALF_ENDS,
        config=SearchConfig(beam_size=1, n_best=2, stop="first"),
        expected={"tokens": [(), (2,)]},
    ),
    "stop first waits for as many as the beam has": Case(
        # Outputs have 0.5, 0.15 and 0.35. The third to end is the best, if barely: with start and
        # end symbol it has 6 tokens, so log(0.35) / ((5 + 6) / 6) = -0.57, and the empty one has 2,
        # so log(0.5) / ((5 + 2) / 6) = -0.59.
        model={
            (): {EOS: 0.5, 2: 0.5},
            (2,): {4: 0.7, EOS: 0.3},
            (2, 4): {5: 1.0},
            (2, 4, 5): {6: 1.0},
        },
        config=SearchConfig(
            beam_size=3, max_length=8, stop="first", penalties=Penalties("wu", alpha=1.0)
        ),
        expected={"tokens": [(2, 4, 5, 6)]},
    ),
    "stop first compares scores": Case(
        model={(): {EOS: 0.4, 2: 0.6}},
        config=SearchConfig(stop="first", penalties=AVERAGE),
        expected={"tokens": [(2,)]},
    ),
    "stop first compares averages of live prefixes": Case(
        model=GROWING,
        config=SearchConfig(beam_size=2, stop="first", penalties=AVERAGE),
        expected={"tokens": [(2, 3, 4, 5)]},
    ),
    "stop first compares rewards of live prefixes": Case(
        model=GROWING,
        config=SearchConfig(beam_size=2, stop="first", penalties=REWARD),
        expected={"tokens": [(2, 3, 4, 5)]},
    ),
    "stop first stops at a tie": Case(
        # The outputs () and (2,) have 0.25 and 0.1; the live prefix (2, 3) has 0.25, and so has
        # (3,), which the beam of one has dropped.
        model={(): {EOS: 0.25, 2: 0.5, 3: 0.25}, (2,): {EOS: 0.2, 3: 0.5, 4: 0.3}},
        config=SearchConfig(beam_size=1, n_best=2, stop="first"),
        expected={"tokens": [(), (2,)], "rows": 2, "bound": 0.25},
    ),
    "hopeless prefixes leave the beam": Case(
        # The empty output has 0.2, so (3,) is dropped; (2,) and (2, 4) cost a row each.
        model={(): {EOS: 0.2, 2: 0.7, 3: 0.1}, (2,): {4: 1.0}},
        config=SearchConfig(stop="first"),
        expected={"rows": 3, "dropped": 1, "finished": 2, "level": "optimal", "bound": 0.1},
    ),
}
