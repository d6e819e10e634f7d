"""Steps against PyTorch's: checks for any backend, and tests of Triton.

test_backends.py calls the checks for C++, and runs the tests in Triton's interpreter or on a GPU.
"""

import os

import pytest
import torch

from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
Kind = type[StepBackend]


def check_cells(
    kind: Kind,
    directions: tuple[int, ...],
    factors: bool,
    device: str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Compare a cell and its gradient; summands and gradients have strides.

    Gates and their gradient have a type of their own.
    """
    torch.manual_seed(0)
    rows, hidden = 5, 37
    gates = torch.randn(*directions, rows, 4 * hidden, device=device).to(dtype)
    summand = torch.randn(*directions, 1, 4 * hidden, device=device).expand_as(gates)
    cell = torch.randn(*directions, rows, hidden, device=device)
    mask = torch.rand(rows, hidden, device=device) if factors else None
    wide = torch.randn(*directions, rows, 3 * hidden, device=device)
    grads = wide[..., hidden : 2 * hidden], wide[..., :hidden], torch.randn_like(cell)
    made = []
    for each in (PyTorchBackend, kind):
        after = each.cell_forward(gates.clone(), summand, cell, mask)
        grad = torch.zeros_like(gates)
        before = each.cell_backward(after[0], cell, after[3], mask, grads, grad)
        made.append([*after, grad.float(), before])
    digits = 1e-4 if dtype == torch.float32 else 2**-8  # a rounding may go to the neighbour
    for found, expected, most in zip(made[1], made[0], [1e-4] * 4 + [digits, 1e-4], strict=True):
        torch.testing.assert_close(found, expected, rtol=most, atol=1e-5)


def check_attention(
    kind: Kind,
    alpha: float,
    factors: bool,
    source: int,
    device: str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Compare a step of attention and its gradients, with rows that share sentences.

    The product and its gradient have a type of their own.
    """
    torch.manual_seed(0)
    rows, hidden, sentences = 5, 37, 4
    keys, values = torch.randn(2, sentences, source, hidden, device=device) * 0.3
    lengths = torch.tensor([source, 3, source - 4, 1], device=device)
    owners = torch.tensor([0, 0, 2, 1, 3], device=device)
    sources = RowSources(SourceMemory(keys, values, lengths), owners, alpha)
    query, product = torch.randn(2, rows, hidden, device=device)
    product = product.to(dtype)
    mask = (torch.rand(rows, hidden, device=device) < 0.7).float() / 0.7 if factors else None
    grad_output = torch.randn(rows, 2 * hidden, device=device)[:, hidden:]
    made = []
    for each in (PyTorchBackend, kind):
        weights, scores = torch.zeros(2, rows, source, device=device)
        output = each.attend(sources, query, product, mask, weights)
        grad = torch.zeros_like(product)
        back = each.attend_backward(
            sources, query, mask, weights, output, grad_output, grad, scores
        )
        made.append([weights, output, scores, back, grad.float()])
    digits = 1e-4 if dtype == torch.float32 else 2**-8
    for found, expected, most in zip(made[1], made[0], [1e-4] * 4 + [digits], strict=True):
        torch.testing.assert_close(found, expected, rtol=most, atol=2e-5)


@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("directions", [(), (1,), (2,)])
def test_cells(directions: tuple[int, ...], factors: bool) -> None:
    from onmt_entmax.recurrence.backends.triton import TritonBackend

    check_cells(TritonBackend, directions, factors, DEVICE)


@pytest.mark.parametrize(
    ("alpha", "factors"),
    [(1.0, False), (1.05, True), (1.33, False), (1.5, True), (2.0, False)],
)
def test_attention(alpha: float, factors: bool) -> None:
    from onmt_entmax.recurrence.backends.triton import TritonBackend

    check_attention(TritonBackend, alpha, factors, 13, DEVICE)


def test_long_sources_and_alphas_above_two_are_pytorchs() -> None:
    from onmt_entmax.recurrence.backends.triton import LONGEST, TritonBackend

    for alpha, length, kind in (
        (2.0, LONGEST, TritonBackend),
        (2.1, LONGEST, PyTorchBackend),
        (1.5, LONGEST + 1, PyTorchBackend),
    ):
        keys = torch.zeros(1, length, 2, device=DEVICE)
        memory = SourceMemory(keys, keys, keys[:, 0, 0].long())
        assert backend_for(keys[0], RowSources(memory, None, alpha)) is kind
