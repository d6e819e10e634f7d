"""One expansion of a beam: ranking within groups, candidates, removal."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.nn.support import as_support
from onmt_entmax.search.arrays import largest_within, rank_within
from onmt_entmax.search.expansion import expand
from onmt_entmax.search.log_probs import remove

SCORED_GROUPS = st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5)), max_size=30)
SEEDS = st.integers(0, 2**16)


def groups_and_scores(items: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    groups = np.array([group for group, _ in items], dtype=np.int64)
    return groups, np.array([score for _, score in items], dtype=np.float64)


def random_log_probs(generator: torch.Generator, vocabulary: int, zeros: float) -> Tensor:
    """Return log-probabilities ``(4, vocabulary)``, of which a share is -inf."""
    log_probs = torch.randn(4, vocabulary, generator=generator).log_softmax(1)
    return log_probs.masked_fill(torch.rand(4, vocabulary, generator=generator) < zeros, -torch.inf)


@given(SCORED_GROUPS)
def test_ranks_are_those_of_a_sort_in_each_group(items: list[tuple[int, float]]) -> None:
    groups, scores = groups_and_scores(items)
    order, ranks = rank_within(groups, scores)
    expected = sorted(range(len(items)), key=lambda i: (groups[i], -scores[i], i))
    assert order.tolist() == expected
    next_rank = [0] * 4
    for item, rank in zip(order, ranks, strict=True):
        assert rank == next_rank[groups[item]]
        next_rank[groups[item]] += 1


@given(SCORED_GROUPS)
def test_the_largest_score_of_each_group(items: list[tuple[int, float]]) -> None:
    largest = largest_within(*groups_and_scores(items), 4)
    for group in range(4):
        scores = [score for of_group, score in items if of_group == group]
        assert largest[group] == max(scores, default=-np.inf)


@given(
    seed=SEEDS,
    width=st.integers(1, 8),
    zeros=st.floats(0, 1),
    vocabulary=st.sampled_from([12, 3000, 6001]),
    sparse=st.booleans(),
)
def test_expansion_keeps_what_a_beam_can_need(
    seed: int, width: int, zeros: float, vocabulary: int, sparse: bool
) -> None:
    eos = 3
    log_probs = random_log_probs(torch.Generator().manual_seed(seed), vocabulary, zeros)
    options = expand(as_support(log_probs) if sparse else log_probs, eos=eos, width=width)
    assert np.array_equal(options.finish, log_probs[:, eos].double().numpy())
    for row in range(4):
        possible = {
            token: value
            for token, value in enumerate(log_probs[row].tolist())
            if value > -np.inf and token != eos
        }
        assert options.continuations[row] == len(possible)
        in_row = options.row == row
        tokens, values = options.token[in_row].tolist(), options.log_prob[in_row].tolist()
        listed = dict(zip(tokens, values, strict=True))
        assert listed.items() <= possible.items()
        assert set(sorted(possible, key=lambda token: -possible[token])[:width]) <= set(listed)
        # `unlisted` bounds the tokens that are left out, and is exactly -inf if there are none.
        left_out = [value for token, value in possible.items() if token not in listed]
        assert max(left_out, default=-np.inf) <= options.unlisted[row]
        assert left_out or options.unlisted[row] == -np.inf
    assert (np.diff(options.row) >= 0).all()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense rows", "a support"])
@given(seed=SEEDS, zeros=st.floats(0, 1), share=st.floats(0, 1))
def test_removed_tokens_are_gone_and_counted(
    sparse: bool, seed: int, zeros: float, share: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    log_probs = random_log_probs(generator, 9, zeros)
    banned = torch.rand(4, 9, generator=generator) < share
    order = torch.randperm(int(banned.sum()), generator=generator)
    rows, tokens = banned.nonzero()[order].numpy().T
    if sparse:
        support, rows_of_removed, removed = remove(as_support(log_probs), rows, tokens)
        left = support.dense()
    else:
        left, rows_of_removed, removed = remove(log_probs.clone(), rows, tokens)
    assert torch.equal(left, log_probs.masked_fill(banned, -torch.inf))
    values = log_probs.double().numpy()[rows, tokens]
    assert np.array_equal(rows_of_removed, rows[values > -np.inf])
    assert np.array_equal(removed, values[values > -np.inf])


@pytest.mark.parametrize("width", [1, 5], ids=["the most probable tokens", "all tokens"])
def test_a_step_that_rounding_lifts_above_one_counts_as_one(width: int) -> None:
    log_probs = torch.tensor([[1e-7, -3.0, 2e-7]])
    options = expand(log_probs, eos=2, width=width)
    assert options.finish.tolist() == [0.0]
    assert options.log_prob.max() == 0.0
