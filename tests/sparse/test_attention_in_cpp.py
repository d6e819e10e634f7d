"""Attention in C++ gives the output and gradients of PyTorch's operations, for each processor."""

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


def results_of(
    alpha: float, mask: Mask, queries: int, keys: int, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Return outputs and gradients of attention, by names that a failure shows.

    The three sentences have small, ordinary and large scores. Alpha, the same for both heads, is
    given as a number and as a tensor.
    """
    torch.manual_seed(3)  # the same inputs at each call
    query, key, value = random_tensors(3, 2, queries=queries, keys=keys, dtype=dtype)
    query = query * torch.tensor([0.01, 1.0, 6.0], dtype=dtype).view(3, 1, 1, 1)
    tensors = as_leaves([query, key, value])
    alphas = torch.tensor([alpha, alpha], dtype=dtype, requires_grad=True)
    if isinstance(mask, Tensor) and has_numbers(mask):
        mask = mask.to(dtype)
    output = entmax_attention(*tensors, alpha=alphas, **mask_arguments(mask))
    of_number = entmax_attention(*tensors, alpha=alpha, **mask_arguments(mask))
    upstream = torch.randn_like(output)
    leaves = {"query": tensors[0], "key": tensors[1], "value": tensors[2]}
    return {
        "output": output,
        "output for one alpha": of_number,
        **gradients_by_name({**leaves, "alpha": alphas}, output, upstream),
        **gradients_by_name(leaves, of_number, upstream, " for one alpha"),
    }


def gradients_by_name(
    leaves: dict[str, Tensor], output: Tensor, upstream: Tensor, suffix: str = ""
) -> dict[str, Tensor]:
    """Return the gradients of an output with respect to leaves, by their names and a suffix."""
    gradients = torch.autograd.grad(output, list(leaves.values()), upstream)
    names = (f"gradient of {name}{suffix}" for name in leaves)
    return dict(zip(names, gradients, strict=True))


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
def test_outputs_and_gradients_in_cpp_equal_those_of_pytorch(
    alpha: float,
    kind: str,
    dtype: torch.dtype,
    queries: int,
    keys: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mask = masks(queries, keys)[kind]
    results = results_of(alpha, mask, queries, keys, dtype)
    monkeypatch.setattr(backends, "backend_for", lambda *_: reference)
    expected = results_of(alpha, mask, queries, keys, dtype)
    # Gradients of large scores are differences of larger numbers, so they lose some digits: in
    # float32, 1e-4 is about a thousand machine epsilons. In float64, 1e-10 is ample.
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(results, expected, rtol=tolerance, atol=tolerance)
