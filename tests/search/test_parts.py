"""Parts of the search: prefix tree, expansion, ranking."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.nn.support import as_support
from onmt_entmax.search.expansion import expand, largest_within, rank_within, remove


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5)), max_size=30))
def test_rank_within_is_a_sort_per_group(items: list[tuple[int, float]]) -> None:
    group = np.array([g for g, _ in items], dtype=np.int64)
    score = np.array([s for _, s in items], dtype=np.float64)
    order, rank = rank_within(group, score)
    expected = sorted(range(len(items)), key=lambda i: (group[i], -score[i], i))
    assert order.tolist() == expected
    seen = [0] * 4
    for i, r in zip(order, rank, strict=True):
        assert r == seen[group[i]]
        seen[group[i]] += 1
    best = largest_within(group, score, 4)
    for g in range(4):
        assert best[g] == max([s for h, s in items if h == g], default=-np.inf)


@given(
    st.integers(0, 2**16),
    st.integers(1, 8),
    st.floats(0, 1),
    st.sampled_from([12, 3000, 6001]),
    st.booleans(),
)
def test_expansion_keeps_what_a_beam_can_need(
    seed: int, width: int, zeros: float, vocabulary: int, ragged: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(4, vocabulary, generator=generator).log_softmax(1)
    log_probs[torch.rand(4, vocabulary, generator=generator) < zeros] = -torch.inf
    options = expand(as_support(log_probs) if ragged else log_probs, eos=3, width=width)
    assert np.array_equal(options.finish, log_probs[:, 3].double().numpy())
    for row in range(4):
        expected = {t: v for t, v in enumerate(log_probs[row].tolist()) if v > -np.inf and t != 3}
        assert options.continuations[row] == len(expected)
        mine = options.row == row
        found = dict(
            zip(options.token[mine].tolist(), options.log_prob[mine].tolist(), strict=True)
        )
        assert found.items() <= expected.items()
        best = sorted(expected, key=lambda t: -expected[t])[:width]
        assert set(best) <= set(found)
        left_out = [value for token, value in expected.items() if token not in found]
        assert max(left_out, default=-np.inf) <= options.unlisted[row]
        assert left_out or options.unlisted[row] == -np.inf
    assert (np.diff(options.row) >= 0).all()


@given(st.integers(0, 2**16), st.floats(0, 1), st.floats(0, 1))
def test_what_is_removed_is_gone_and_counted(seed: int, zeros: float, share: float) -> None:
    """Removing pairs from dense rows and from a support gives the same."""
    generator = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(4, 9, generator=generator).log_softmax(1)
    log_probs[torch.rand(4, 9, generator=generator) < zeros] = -torch.inf
    pairs = torch.rand(4, 9, generator=generator) < share
    order = torch.randperm(int(pairs.sum()), generator=generator)
    row, token = pairs.nonzero()[order].numpy().T
    expected = log_probs.masked_fill(pairs, -torch.inf)
    gone = sorted(log_probs[pairs & (log_probs > -torch.inf)].tolist())
    support, *of_support = remove(as_support(log_probs), row, token)
    whole, *of_whole = remove(log_probs.clone(), row, token)
    assert torch.equal(whole, expected)
    assert torch.equal(support.dense(), expected)
    assert all(np.array_equal(a, b) for a, b in zip(of_support, of_whole, strict=True))
    assert sorted(of_whole[1].tolist()) == gone


def test_a_step_that_rounding_lifts_above_one_counts_as_one() -> None:
    log_probs = torch.tensor([[1e-7, -3.0, 2e-7]])
    for width in (1, 5):  # the most probable tokens, or all of them
        options = expand(log_probs.clone(), eos=2, width=width)
        assert options.finish.tolist() == [0.0]
        assert options.log_prob.max() == 0.0
