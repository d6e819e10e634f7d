"""Tokens that are removed from a step: they are gone, and their probabilities are returned."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.nn.support import as_support
from onmt_entmax.search.log_probs import remove
from tests.search.random_steps import random_log_probs

SIZE = (4, 9)  # rows and tokens


class Removal(NamedTuple):
    """A step, and the tokens that are removed from it, in any order."""

    log_probs: Tensor
    """`(rows, vocabulary)`"""
    banned: Tensor
    """Whether a token is removed, bool `(rows, vocabulary)`."""
    rows: np.ndarray
    """Rows of the removed tokens, `(removed,)`."""
    tokens: np.ndarray
    """`(removed,)`"""

    @property
    def removed_log_probs(self) -> np.ndarray:
        """Log-probabilities of the removed tokens, `(removed,)`, in float64."""
        values: np.ndarray = self.log_probs.double().numpy()[self.rows, self.tokens]
        return values


@st.composite
def removals(draw: st.DrawFn) -> Removal:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    log_probs = random_log_probs(SIZE, draw(st.floats(0, 1)), generator)
    banned = torch.rand(SIZE, generator=generator) < draw(st.floats(0, 1))
    order = torch.randperm(int(banned.sum()), generator=generator)
    rows, tokens = banned.nonzero()[order].numpy().T
    return Removal(log_probs, banned, rows, tokens)


@given(removals())
def test_tokens_are_removed_from_dense_rows(removal: Removal) -> None:
    left, _, _ = remove(removal.log_probs.clone(), removal.rows, removal.tokens)
    assert torch.equal(left, removal.log_probs.masked_fill(removal.banned, -torch.inf))


@given(removals())
def test_tokens_are_removed_from_a_support(removal: Removal) -> None:
    left, _, _ = remove(as_support(removal.log_probs), removal.rows, removal.tokens)
    assert torch.equal(left.dense(), removal.log_probs.masked_fill(removal.banned, -torch.inf))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense rows", "a support"])
@given(removal=removals())
def test_removed_tokens_that_were_possible_are_returned(sparse: bool, removal: Removal) -> None:
    """Their rows and log-probabilities are returned."""
    step = as_support(removal.log_probs) if sparse else removal.log_probs.clone()
    _, rows, log_probs = remove(step, removal.rows, removal.tokens)
    is_possible = removal.removed_log_probs > -torch.inf
    assert np.array_equal(rows, removal.rows[is_possible])
    assert np.array_equal(log_probs, removal.removed_log_probs[is_possible])
