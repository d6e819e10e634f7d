"""Sequence-level ensembles against completely known distributions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.search.sequence_ensemble import ListedSequences, average_sequences

STRINGS = "abcdef"


@st.composite
def distributions(
    draw: st.DrawFn,
) -> tuple[list[dict[str, float]], list[ListedSequences], list[float]]:
    """Draw distributions over six sequences, the listed part of each, and weights."""
    full, listed = [], []
    for _ in range(draw(st.integers(1, 4))):
        raw = draw(st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any))
        whole = {string: n / sum(raw) for string, n in zip(STRINGS, raw, strict=True)}
        shown = draw(st.sets(st.sampled_from(STRINGS)))
        others = [whole[string] for string in STRINGS if string not in shown]
        # A bound of a search may be anything above the truth, and a list may say too little.
        above = draw(st.sampled_from([0.0, 0.0, 0.05]))
        slack = draw(st.sampled_from([0.0, above]))
        full.append(whole)
        known = {s: max(0.0, whole[s] - slack) for s in STRINGS if s in shown}
        if not above:
            known = {string: p for string, p in known.items() if p > 0}
        listed.append(ListedSequences(known, max(others, default=0.0) + above, slack))
    raw_weights = draw(st.lists(st.integers(1, 3), min_size=len(full), max_size=len(full)))
    return full, listed, [weight / sum(raw_weights) for weight in raw_weights]


@given(distributions())
def test_every_claim_holds(case) -> None:
    full, listed, weights = case
    truth = {s: sum(w * p[s] for w, p in zip(weights, full, strict=True)) for s in STRINGS}
    found = average_sequences(listed, weights)
    assert list(found.probabilities) == sorted(found.probabilities, reverse=True)
    for string, probability in zip(found.sequences, found.probabilities, strict=True):
        assert probability <= truth[string] + 1e-12
        if found.level == "exhaustive":
            assert probability == pytest.approx(truth[string])
        assert truth[string] <= probability + found.bound + 1e-12
    outside = [truth[string] for string in STRINGS if string not in found.sequences]
    assert max(outside, default=0.0) <= found.bound + 1e-12
    assert (found.level == "exhaustive") == (found.bound == 0)
    # Every string that is proven is at least as probable as all that come after it.
    for rank, string in enumerate(found.sequences[: found.proven]):
        ahead = found.sequences[: rank + 1]
        later = [truth[other] for other in STRINGS if other not in ahead]
        assert truth[string] >= max(later, default=0.0) - 1e-12
    assert (found.gap >= 0) == (found.level != "none")
    if found.level == "optimal":
        assert truth[found.sequences[0]] >= max(truth.values()) - 1e-12


def test_bounds_prove_ranks() -> None:
    """`b` may have 0.2 in the second model, and an unlisted sequence 0.5 * 0.2 on average."""
    parts = [ListedSequences({"a": 0.6, "b": 0.4}, 0.0), ListedSequences({"a": 0.7, "c": 0.3}, 0.2)]
    found = average_sequences(parts, [0.5, 0.5])
    assert found.sequences == ("a", "b", "c")
    assert found.probabilities == pytest.approx((0.65, 0.2, 0.15))
    assert found.bound == pytest.approx(0.1)
    assert found.gap == pytest.approx(math.log(0.65 / 0.3))
    assert (found.level, found.proven) == ("optimal", 3)
    # A little more of the unknown and `b` is no longer known to be ahead of `c`, nor `c` proven.
    worse = average_sequences([ListedSequences({"a": 0.6, "b": 0.4}, 0.2), parts[1]], [0.5, 0.5])
    assert (worse.level, worse.proven) == ("optimal", 1)
    # Where a listed sequence may have more, `b` may be ahead of `a`.
    found = average_sequences([ListedSequences({"a": 0.5, "b": 0.45}, 0.1, 0.1)], [1.0])
    assert (found.level, found.gap) == ("none", pytest.approx(math.log(0.5 / 0.55)))


def test_ties_keep_the_order_of_the_models() -> None:
    for order in (("x", "y"), ("y", "x")):
        parts = [ListedSequences({sequence: 1.0}, 0.0) for sequence in order]
        found = average_sequences(parts, [0.5, 0.5])
        assert (found.sequences, found.probabilities) == (order, (0.5, 0.5))
        assert (found.level, found.gap, found.proven) == ("exhaustive", math.inf, 2)


def test_underflow_is_not_zero() -> None:
    tiny = math.ulp(0.0)
    found = average_sequences(
        [ListedSequences({"a": 1.0}, tiny), ListedSequences({"a": 1.0}, 0.0)], [0.5, 0.5]
    )
    assert (found.level, found.proven) == ("optimal", 1)
    assert 0 < found.bound < 1e-300
    found = average_sequences([ListedSequences({"a": 0.0}, tiny)], [1.0])
    assert (found.level, found.proven, found.gap) == ("none", 0, -math.inf)


def test_a_gap_is_negative_where_logarithms_round_to_the_same_number() -> None:
    """The first is one bit less probable than another sequence may be."""
    first = 0.2
    below = math.nextafter(first, 1.0)
    assert math.log(first) == math.log(below)
    found = average_sequences([ListedSequences({"a": first}, below)], [1.0])
    assert (found.level, found.proven) == ("none", 0)
    assert found.gap < 0
