"""Cases of a beam search under penalties, whose hypotheses compete by score.

`cases.py` explains the parts of a case, and the penalties `AVERAGE` and `COVERED`.
"""

import math

from onmt_entmax.search import SearchConfig
from tests.search.cases import AVERAGE, COVERED, Case
from tests.search.tables import EOS

PENALISED: dict[str, Case] = {
    "a better average comes later": Case(
        # (2,) has log(0.48) / 3 = -0.24. (3, 4, 5) has log(0.45) / 5 = -0.16, though it begins with
        # the second best token.
        model={
            (): {2: 0.5, 3: 0.45, 4: 0.05},
            (2,): {EOS: 0.96, 4: 0.04},
            (3,): {4: 1.0},
            (3, 4): {5: 1.0},
        },
        config=SearchConfig(beam_size=2, max_length=5, penalties=AVERAGE),
        expected={"tokens": [(3, 4, 5)]},
    ),
    "hypotheses compete by score": Case(
        # The empty one attends to nothing: its score is -inf. The others cover the source.
        model={(): {EOS: 0.4, 2: 0.35, 3: 0.25}, (3,): {4: 1.0}},
        config=SearchConfig(n_best=2, max_length=5, stop="optimal", penalties=COVERED),
        expected={"tokens": [(2,), (3, 4)], "score": math.log(0.35), "proven": 2},
    ),
    "a score above the probability ends the search": Case(
        # The empty output has log(0.5) / 2 = -0.35. The others begin with 0.1, and those of three
        # tokens have the largest divisor, with at most log(0.1) / 5 = -0.46.
        model={(): {EOS: 0.5, **dict.fromkeys(range(2, 7), 0.1)}},
        config=SearchConfig(max_length=3, stop="optimal", penalties=AVERAGE),
        expected={"rows": 1, "level": "optimal", "score": math.log(0.5) / 2},
    ),
}
