"""Cases of a beam search by probability alone: what it finds, cuts and proves."""

import math

from onmt_entmax.search import SearchConfig
from tests.search.cases import Case
from tests.search.tables import EOS

BEAM: dict[str, Case] = {
    "one live prefix costs one row": Case(
        # The prefixes (), (2,) and (2, 3) have one possible token each.
        model={(): {2: 1.0}, (2,): {3: 1.0}},
        expected={
            "tokens": [(2, 3)],
            "rows": 3,
            "support": 3,
            "strict": True,
            "mass": 1,
            "bound": 0,
        },
    ),
    "a single output is the only one": Case(
        model={(): {2: 1.0}},
        expected={"level": "exhaustive", "finished": 1, "only": True},
    ),
    "one of several outputs is not the only one": Case(
        model={(): {2: 0.6, EOS: 0.4}},
        config=SearchConfig(beam_size=2),
        expected={"level": "exhaustive", "finished": 2, "only": False},
    ),
    "the only finished output is not the only one if others were cut": Case(
        model={(): {EOS: 0.5, 2: 0.5}, (2,): {2: 1.0}},
        config=SearchConfig(max_length=1),
        expected={"level": "optimal", "finished": 1, "only": False},
    ),
    "finished hypotheses take no place in the beam": Case(
        # At each step one hypothesis ends and one lives: more than fit a beam of one together, so
        # it is exhaustive without being strict.
        model={(): {EOS: 0.5, 2: 0.5}, (2,): {EOS: 0.5, 3: 0.5}, (2, 3): {EOS: 0.5, 4: 0.5}},
        config=SearchConfig(beam_size=1, n_best=0),
        expected={
            "finished": 4,
            "level": "exhaustive",
            "mass": 1,
            "strict": False,
            "gap": math.inf,
        },
    ),
    "two hypotheses fit a beam of two": Case(
        model={(): {2: 0.6, EOS: 0.4}},
        config=SearchConfig(beam_size=2, stop="optimal"),
        expected={"level": "exhaustive", "strict": True, "tokens": [(2,)]},
    ),
    "a tie is optimal, and a cut prefix is counted": Case(
        model={(): {EOS: 0.5, 2: 0.5}, (2,): {2: 1.0}},
        config=SearchConfig(beam_size=1, max_length=1),
        expected={
            "level": "optimal",
            "gap": 0,
            "truncated": 1,
            "dropped": 0,
            "proven": 1,
            "unfinished": None,
        },
    ),
    "where nothing finishes the best prefix is unfinished": Case(
        model={(): {2: 0.6, 3: 0.4}, (2,): {2: 1.0}, (3,): {3: 0.5, 2: 0.5}},
        config=SearchConfig(max_length=1),
        expected={
            "tokens": [],
            "level": "none",
            "unfinished": (2,),
            "bound": 0.6,
            "gap": -math.inf,
        },
    ),
    "ranks are proven as far as the bound reaches": Case(
        # Outputs have 0.4, 0.35 * 0.9 and 0.35 * 0.1; the third is below the dropped prefix (3,).
        model={(): {EOS: 0.4, 2: 0.35, 3: 0.25}, (2,): {EOS: 0.9, 4: 0.1}},
        config=SearchConfig(beam_size=1, n_best=3),
        expected={
            "tokens": [(), (2,), (2, 4)],
            "bound": 0.25,
            "level": "optimal",
            "proven": 2,
        },
    ),
    "prefixes that are no candidates are counted as dropped": Case(
        # Of five continuations of (2,) a beam of one keeps the first; the second is the bound. The
        # support is one token of (), five of (2,), and the end after (2, 2).
        model={(): {2: 1.0}, (2,): {2: 0.3, 3: 0.25, 4: 0.2, 5: 0.15, 6: 0.1}},
        config=SearchConfig(beam_size=1),
        expected={
            "tokens": [(2, 2)],
            "dropped": 4,
            "bound": 0.25,
            "level": "optimal",
            "support": 1 + 5 + 1,
        },
    ),
}
