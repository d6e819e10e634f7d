"""Dropout of attention weights."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention, entmax_attention_weights
from tests.sparse.attention_inputs import Numbers, alpha_of, as_leaves, random_tensors

DROPOUT = 0.3  # probability


@pytest.fixture(params=[1.5, (1.3, 1.8), (1.5, 2.5)])
def alpha(request: pytest.FixtureRequest) -> float | Tensor:
    """A number, or a tensor with one for each head."""
    numbers: Numbers = request.param
    return alpha_of(numbers, torch.float64)


@pytest.fixture
def tensors() -> list[Tensor]:
    """A query, a key, and the identity as value, with which the output is the weights."""
    query, key, _ = random_tensors(3, 2, queries=40, keys=30, dtype=torch.float64)
    return [query, key, torch.eye(30, dtype=torch.float64).expand(3, 2, 30, 30)]


def test_weights_that_are_kept_are_scaled(tensors: list[Tensor], alpha: float | Tensor) -> None:
    weights = entmax_attention_weights(*tensors[:2], alpha=alpha)
    output = entmax_attention(*tensors, alpha=alpha, dropout_p=DROPOUT)
    is_kept = output != 0
    torch.testing.assert_close(output[is_kept], weights[is_kept] / (1 - DROPOUT))


def test_dropout_p_is_the_share_of_dropped_weights(
    tensors: list[Tensor], alpha: float | Tensor
) -> None:
    weights = entmax_attention_weights(*tensors[:2], alpha=alpha)
    output = entmax_attention(*tensors, alpha=alpha, dropout_p=DROPOUT)
    is_dropped = output[weights > 0] == 0
    standard_deviation = (DROPOUT * (1 - DROPOUT) / len(is_dropped)) ** 0.5
    share = float(is_dropped.double().mean())
    assert share == pytest.approx(DROPOUT, abs=4 * standard_deviation)


def test_a_probability_of_1_drops_all(tensors: list[Tensor], alpha: float | Tensor) -> None:
    assert (entmax_attention(*tensors, alpha=alpha, dropout_p=1.0) == 0).all()


# --- gradients -------------------------------------------------------------------------------


@pytest.fixture
def leaves() -> list[Tensor]:
    """A query, a key and a value that get gradients, so small that finite differences are quick."""
    return as_leaves(random_tensors(3, 2, queries=2, keys=3, dtype=torch.float64))


def with_a_seed(alpha: float | Tensor) -> Callable[..., Tensor]:
    """Return attention that drops the same weights at each call."""

    def attention(*tensors: Tensor) -> Tensor:
        torch.manual_seed(5)
        return entmax_attention(*tensors, alpha=alpha, dropout_p=0.4)

    return attention


def test_gradients_are_exact(leaves: list[Tensor], alpha: float | Tensor) -> None:
    assert torch.autograd.gradcheck(with_a_seed(alpha), leaves)


def test_gradients_with_a_graph_are_the_same(leaves: list[Tensor], alpha: float | Tensor) -> None:
    total = with_a_seed(alpha)(*leaves).square().sum()
    plain = torch.autograd.grad(total, leaves, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(total, leaves, create_graph=True), plain)


# --- randomness ------------------------------------------------------------------------------

HEADS, QUERIES, KEYS = 2, 50, 200


def kept_with_seed(seed: int) -> Tensor:
    """Return which of equal weights ``(HEADS * QUERIES, KEYS)`` half dropout keeps."""
    query, key = torch.zeros(1, HEADS, QUERIES, 4), torch.zeros(1, HEADS, KEYS, 4)
    identity = torch.eye(KEYS).expand(1, HEADS, KEYS, KEYS)
    torch.manual_seed(seed)
    output = entmax_attention(query, key, identity, alpha=1.5, dropout_p=0.5)
    return output.flatten(0, 2) > 0


def test_a_seed_determines_what_is_dropped() -> None:
    assert torch.equal(kept_with_seed(1), kept_with_seed(1))


@pytest.fixture(scope="module")
def signs_of_rows() -> Tensor:
    """1 for weights that are kept, else -1 ``(2 * HEADS * QUERIES, KEYS)``, from two seeds."""
    return torch.cat([kept_with_seed(1), kept_with_seed(2)]).double() * 2 - 1


def test_rows_drop_independently(signs_of_rows: Tensor) -> None:
    """This compares rows of a head, of two heads and of two seeds.

    The mean product of the signs of two independent rows is 0 on average, with a standard deviation
    of KEYS ** -0.5 = 0.07. The limit is six of these, since there are 20,000 pairs of rows.
    """
    agreement = (signs_of_rows @ signs_of_rows.T / KEYS).fill_diagonal_(0)
    assert agreement.abs().max() < 0.45


def test_columns_are_dropped_alike(signs_of_rows: Tensor) -> None:
    """The mean of 200 signs has a standard deviation of 200 ** -0.5 = 0.07; the limit is five."""
    assert signs_of_rows.mean(0).abs().max() < 0.4
