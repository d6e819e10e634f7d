"""Traces by `torch.jit.trace`.

Each is made with one example, and must be right for other values and other lengths.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from onmt_entmax import (
    entmax,
    entmax_attention,
    entmax_attention_weights,
    entmax_loss,
    log_entmax,
    tsallis_entropy,
)
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.sparse import reference, traced
from tests.sparse.alphas import as_number_and_tensor

ALPHAS = (1.0, 1.2, 1.5, 2.0, 3.0)
INDEX = torch.tensor([0, 3, 9])

pytestmark = pytest.mark.usefixtures("no_tracer_warnings")


def awkward_scores(alpha: float) -> Tensor:
    """Return scores ``(40, 33)``: ordinary, far apart, equal, -inf, on the support's edge."""
    scales = torch.tensor([0.1, 1.0, 5.0, 100.0], dtype=torch.float64).repeat(10)
    z = torch.randn(40, 33, dtype=torch.float64) * scales.unsqueeze(1)
    z[0] = 1.0
    z[1, 3:] = -math.inf
    z[2, :2] = torch.tensor([0.0, 1 / (alpha - 1)])  # the first has exactly no probability
    return z


@pytest.mark.parametrize("alpha", [1.01, 1.2, 1.5, 2.0, 2.5, 4.0, 10.0, 100.0])
def test_the_operations_equal_the_definition(alpha: float) -> None:
    """Supports are equal too, above alpha 2 with probabilities that no threshold determines."""
    z = awkward_scores(alpha)
    for logs in (False, True):
        expected = reference.mapping(z, alpha, logs)
        for alpha_argument in as_number_and_tensor(alpha, z):
            output = traced.mapping(z, alpha_argument, logs)
            torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-12)
            empty = -math.inf if logs else 0
            assert torch.equal(output == empty, expected == empty)


def with_gradients(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return an output, and the gradients of a weighted sum of it with respect to all inputs.

    The sum counts outputs of -inf as 0.
    """
    inputs = tuple(x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs)
    output = function(*inputs)
    finite = torch.where(output.isinf(), 0.0, output)
    factors = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view(output.shape)
    leaves = [x for x in inputs if x.requires_grad]
    total = (finite * factors).sum()
    return [output.detach(), *torch.autograd.grad(total, leaves, materialize_grads=True)]


def check_trace(
    function: Callable[..., Tensor], example: tuple[Tensor, ...], other: tuple[Tensor, ...]
) -> None:
    """Trace a function with an example; compare values and gradients for it and other inputs."""
    trace = torch.jit.trace(function, example, check_trace=False)  # which would trace twice
    with torch.jit.optimized_execution(False):  # optimising each graph takes half a second
        for inputs in (example, other):
            compare(trace, function, inputs)


def compare(
    trace: Callable[..., Tensor], function: Callable[..., Tensor], inputs: tuple[Tensor, ...]
) -> None:
    """Compare the values and gradients of a trace with those of the function traced."""
    expected, *expected_gradients = with_gradients(function, inputs)
    output, *gradients = with_gradients(trace, inputs)
    # Values are rounded to float32: two machine epsilons. Gradients are differences, of which
    # cancelled digits are lost.
    torch.testing.assert_close(output, expected, rtol=2e-7, atol=2e-7)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-5, atol=2e-6)


# --- mappings and entropies ------------------------------------------------------------------


def over_columns(z: Tensor, alpha: float) -> Tensor:
    return entmax(z, alpha, dim=0)


def logs_of_float64(z: Tensor, alpha: float) -> Tensor:
    return log_entmax(z.double(), alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("mapping", [entmax, over_columns, logs_of_float64])
def test_a_traced_mapping_takes_rows_of_another_length(
    mapping: Callable[[Tensor, float], Tensor], alpha: float
) -> None:
    check_trace(lambda z: mapping(z, alpha), (torch.randn(3, 10),), (torch.randn(7, 41),))


def loss_of_index(z: Tensor, alpha: float | Tensor) -> Tensor:
    return entmax_loss(z, INDEX, alpha)


@pytest.mark.parametrize("function", [entmax, log_entmax, loss_of_index])
def test_one_trace_takes_alphas_of_1_up_to_2_and_above(function: Callable[..., Tensor]) -> None:
    z = torch.randn(3, 10).double()
    example = torch.tensor([[1.2], [1.5], [2.0]]).double()
    other = torch.tensor([[1.0], [1.4], [3.0]]).double()
    check_trace(function, (z, example), (z * 2, other))


def test_a_trace_has_the_gradient_of_a_logarithm_far_below_the_smallest_float() -> None:
    """Logarithms of -1060 and less: 1 / p is infinite in float64."""
    example, other = torch.tensor([[0.0, -199.0]]).double(), torch.tensor([[0.0, -199.5]]).double()
    check_trace(lambda z: log_entmax(z, 1.005), (example,), (other,))


@pytest.mark.parametrize("function", [entmax, loss_of_index])
def test_a_trace_that_pytorch_has_optimised_gives_the_same(function: Callable[..., Tensor]) -> None:
    """PyTorch observes the first run, optimises the graph for the second, and then keeps it."""

    def of_scores(z: Tensor) -> Tensor:
        return function(z, 3.0)  # one number, since with alphas of rows optimising takes seconds

    z = torch.randn(3, 10)
    trace = torch.jit.trace(of_scores, z, check_trace=False)
    for _ in range(3):
        compare(trace, of_scores, (z,))


def test_a_traced_entropy_takes_other_alphas() -> None:
    """An alpha is an input of the trace, not a constant of its example."""
    example = torch.rand(3, 10).softmax(-1), torch.tensor([[1.2], [1.5], [2.0]])
    check_trace(tsallis_entropy, example, (torch.rand(3, 41).softmax(-1), torch.rand(3, 1) + 1.1))


# --- losses ----------------------------------------------------------------------------------


def smoothed_loss(z: Tensor, target: Tensor, alpha: float) -> Tensor:
    return entmax_loss(z, target, alpha, label_smoothing=0.1)


def weighted_losses(z: Tensor, target: Tensor, alpha: float) -> Tensor:
    return entmax_loss(z, target, alpha, weight=z.detach()[0].abs(), reduction="none")


def loss_of_distributions(z: Tensor, target: Tensor, alpha: float) -> Tensor:
    return entmax_loss(z, z.detach().softmax(-1), alpha)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("loss", [smoothed_loss, weighted_losses, loss_of_distributions])
def test_a_traced_loss_takes_other_rows_and_targets(
    loss: Callable[[Tensor, Tensor, float], Tensor], alpha: float
) -> None:
    """One of the other targets is ignored."""
    other = torch.randn(5, 12).double(), torch.tensor([0, 3, 11, 2, -100])
    example = torch.randn(3, 10).double(), INDEX
    check_trace(lambda z, target: loss(z, target, alpha), example, other)


# --- attention -------------------------------------------------------------------------------


def attention_inputs(*, batch: int, queries: int, keys: int, size: int) -> tuple[Tensor, ...]:
    """Return queries of four heads, keys of two, and a mask ``(queries, keys)`` of 0 and 1."""
    query, key = torch.randn(batch, 4, queries, size), torch.randn(batch, 2, keys, size)
    return query.double(), key.double(), (torch.randn(queries, keys) > -1).double()


def weights_of_open_keys(query: Tensor, key: Tensor, mask: Tensor, **options: Any) -> Tensor:
    return entmax_attention_weights(query, key, **options, attn_mask=mask > 0)


def causal_attention(query: Tensor, key: Tensor, mask: Tensor, **options: Any) -> Tensor:
    return entmax_attention(query, key, key, **options, is_causal=True)


def attention_with_added_mask(query: Tensor, key: Tensor, mask: Tensor, **options: Any) -> Tensor:
    return entmax_attention(query, key, key, **options, attn_mask=mask, dropout_p=0.0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    "attention", [weights_of_open_keys, causal_attention, attention_with_added_mask]
)
def test_traced_attention_takes_other_sizes(attention: Callable[..., Tensor], alpha: float) -> None:
    example = attention_inputs(batch=1, queries=4, keys=5, size=10)
    other = attention_inputs(batch=2, queries=9, keys=8, size=12)

    def with_options(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        return attention(query, key, mask, alpha=alpha, enable_gqa=True)

    check_trace(with_options, example, other)


@pytest.mark.parametrize("shape", [(1, 4, 10), (2, 9, 10)])
def test_a_trace_with_a_short_example_takes_longer_inputs(shape: tuple[int, ...]) -> None:
    """Here nothing needs a gradient, so attention reads and writes memory by itself."""
    example, inputs = torch.randn(1, 4, 10), torch.randn(shape)
    trace = torch.jit.trace(lambda z: entmax_attention(z, z, z, alpha=1.5), (example,))
    expected = entmax_attention(inputs, inputs, inputs, alpha=1.5)
    torch.testing.assert_close(trace(inputs), expected, rtol=2e-7, atol=4e-7)


def test_traced_attention_takes_other_alphas_of_heads() -> None:
    def attention(z: Tensor, alpha: Tensor) -> Tensor:
        return entmax_attention(z, z, z, alpha=alpha)

    alphas = torch.tensor([1.0, 1.3, 2.0, 3.0]).double()
    example, other = torch.randn(1, 4, 4, 10).double(), torch.randn(2, 4, 9, 10).double()
    check_trace(attention, (example, alphas), (other, alphas.flip(0)))


@pytest.mark.parametrize("attn_type", ["dot", "general", "mlp"])
def test_traced_attention_of_an_lstm_takes_other_lengths(attn_type: str) -> None:
    module = EntmaxGlobalAttention(8, attn_type, 1.5)
    with warnings.catch_warnings():
        # OpenNMT-py compares the shapes of the example.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        example = torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.tensor([5, 3])
        trace = torch.jit.trace(module, example)
    inputs = torch.randn(4, 6, 8), torch.randn(4, 9, 8), torch.tensor([9, 1, 2, 4])
    torch.testing.assert_close(trace(*inputs), module(*inputs), rtol=2e-7, atol=2e-7)
