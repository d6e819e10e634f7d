"""One expansion of a beam: the candidates of each prefix, and the bound on all other tokens."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.nn.support import as_support
from onmt_entmax.search.expansion import Expansion, expand
from tests.search.random_steps import random_log_probs

EOS = 3
ROWS = 4  # prefixes that are expanded together


class Expanded(NamedTuple):
    """Random log-probabilities, and the candidates that a search gets of them."""

    log_probs: Tensor
    """`(rows, vocabulary)`"""
    width: int
    options: Expansion

    def possible(self, row: int) -> dict[int, float]:
        """Return the tokens that may follow a row, without the end, with log-probabilities."""
        values = enumerate(self.log_probs[row].tolist())
        return {token: value for token, value in values if value > -np.inf and token != EOS}

    def listed(self, row: int) -> dict[int, float]:
        """Return the candidates of a row, with their log-probabilities."""
        in_row = self.options.row == row
        tokens = self.options.token[in_row].tolist()
        return dict(zip(tokens, self.options.log_prob[in_row].tolist(), strict=True))


@st.composite
def expansions(draw: st.DrawFn) -> Expanded:
    """Draw an expansion of dense rows or of a support, whole or only the best of each row."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    vocabulary = draw(st.sampled_from([12, 3000, 6001]))
    zeros = draw(st.floats(0, 1))
    log_probs = random_log_probs((ROWS, vocabulary), zeros, generator)
    width = draw(st.integers(1, 8))
    distribution = as_support(log_probs) if draw(st.booleans()) else log_probs
    return Expanded(log_probs, width, expand(distribution, eos=EOS, width=width))


@given(expansions())
def test_an_expansion_has_the_log_probability_of_each_end(expanded: Expanded) -> None:
    assert np.array_equal(expanded.options.finish, expanded.log_probs[:, EOS].double().numpy())


@given(expansions())
def test_an_expansion_counts_the_tokens_that_may_follow(expanded: Expanded) -> None:
    numbers = [len(expanded.possible(row)) for row in range(ROWS)]
    assert expanded.options.continuations.tolist() == numbers


@given(expansions())
def test_candidates_are_possible_and_have_their_log_probabilities(expanded: Expanded) -> None:
    for row in range(ROWS):
        assert expanded.listed(row).items() <= expanded.possible(row).items()


@given(expansions())
def test_the_most_probable_tokens_of_a_row_are_candidates(expanded: Expanded) -> None:
    for row in range(ROWS):
        possible = expanded.possible(row)
        best = sorted(possible, key=lambda token: -possible[token])[: expanded.width]
        assert set(best) <= set(expanded.listed(row))


@given(expansions())
def test_no_token_that_is_left_out_exceeds_the_bound_of_its_row(expanded: Expanded) -> None:
    """The bound is exactly -inf if there are none."""
    for row in range(ROWS):
        listed = expanded.listed(row)
        left_out = [p for token, p in expanded.possible(row).items() if token not in listed]
        bound = expanded.options.unlisted[row]
        assert max(left_out, default=-np.inf) <= bound
        assert bool(left_out) == (bound > -np.inf)


@given(expansions())
def test_candidates_are_in_the_order_of_their_rows(expanded: Expanded) -> None:
    assert (np.diff(expanded.options.row) >= 0).all()


@pytest.mark.parametrize("width", [1, 5], ids=["the most probable tokens", "all tokens"])
def test_a_step_that_rounding_lifts_above_one_counts_as_one(width: int) -> None:
    log_probs = torch.tensor([[1e-7, -3.0, 2e-7]])
    options = expand(log_probs, eos=2, width=width)
    assert options.finish.tolist() == [0.0]
    assert options.log_prob.max() == 0.0
