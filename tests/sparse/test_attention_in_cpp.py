"""Attention in C++ gives the output and gradients of PyTorch's operations, for each processor."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention
from onmt_entmax.sparse import backends, reference
from tests.sparse.attention_inputs import (
    Mask,
    as_leaves,
    has_numbers,
    mask_arguments,
    masks,
    random_tensors,
)
from tests.sparse.implementations import CPP


class Outcome(NamedTuple):
    """Attention with one alpha for all heads, given as a tensor and as a number."""

    output: Tensor
    gradients: tuple[Tensor, ...]
    """Gradients in query, key, value and alphas."""
    output_of_number: Tensor
    gradients_of_number: tuple[Tensor, ...]
    """Gradients in query, key and value."""


def outcome_of(alpha: float, mask: Mask, queries: int, keys: int, dtype: torch.dtype) -> Outcome:
    """Return an outcome whose three sentences have small, ordinary and large scores."""
    torch.manual_seed(3)
    query, key, value = random_tensors(3, 2, queries=queries, keys=keys, dtype=dtype)
    query = query * torch.tensor([0.01, 1.0, 6.0], dtype=dtype).view(3, 1, 1, 1)
    tensors = as_leaves([query, key, value])
    alphas = torch.tensor([alpha, alpha], dtype=dtype, requires_grad=True)
    if isinstance(mask, Tensor) and has_numbers(mask):
        mask = mask.to(dtype)
    output = entmax_attention(*tensors, alpha=alphas, **mask_arguments(mask))
    of_number = entmax_attention(*tensors, alpha=alpha, **mask_arguments(mask))
    upstream = torch.randn_like(output)
    return Outcome(
        output=output,
        gradients=torch.autograd.grad(output, [*tensors, alphas], upstream),
        output_of_number=of_number,
        gradients_of_number=torch.autograd.grad(of_number, tensors, upstream),
    )


@pytest.mark.parametrize(
    ("alpha", "kind", "dtype"),
    [
        (1.0, "none", torch.float32),
        (1.0001, "causal", torch.float64),
        (1.1, "random", torch.float64),
        (1.37, "holes", torch.float32),
        (1.5, "none", torch.float64),
        (1.5, "causal", torch.float64),
        (1.95, "random", torch.float32),
        (2.0, "holes", torch.float64),
        (2.0, "none", torch.float64),
        (2.5, "causal", torch.float32),
        (3.0, "random", torch.float64),
    ],
)
@pytest.mark.parametrize(
    ("queries", "keys"), [(5, 7), (6, 70)], ids=["keys fill no vector", "keys fill several"]
)
@pytest.mark.parametrize("implementation", CPP, indirect=True)
@pytest.mark.usefixtures("implementation")
def test_cpp_agrees_with_pytorch(
    alpha: float,
    kind: str,
    dtype: torch.dtype,
    queries: int,
    keys: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mask = masks(queries, keys)[kind]
    fused = outcome_of(alpha, mask, queries, keys, dtype)
    monkeypatch.setattr(backends, "backend_for", lambda *_: reference)
    expected = outcome_of(alpha, mask, queries, keys, dtype)
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(fused, expected, rtol=tolerance, atol=tolerance)
