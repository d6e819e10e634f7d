"""Checks of tensors whose values cannot be read, and the private PyTorch that they use."""

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from onmt_entmax.sparse import arguments, entmax, entmax_loss
from onmt_entmax.sparse.arguments import has_memory, is_readable, is_traced


def test_pytorch_counts_its_dispatch_modes() -> None:
    """If this fails, PyTorch has moved the function: look for its new name.

    Without it, entmax under `make_fx`, fake tensors or FlopCounterMode reads values that are not
    there, and fails or records its Newton steps. Eager code and `torch.compile` are not affected.
    """
    assert hasattr(torch._C, "_len_torch_dispatch_stack")
    seen = []
    make_fx(lambda x: (seen.append(is_traced()), x + 1)[1], tracing_mode="fake")(torch.ones(2))
    assert seen == [True]
    assert not is_traced()


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5])
def test_without_that_function_eager_and_compiled_code_work(
    alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arguments, "_active_modes", None)
    torch._dynamo.reset()
    index = torch.tensor([0, 2, 4])

    def both(z: Tensor) -> Tensor:
        return entmax(z, alpha).square().sum() + entmax_loss(z, index, alpha)

    gradients = []
    for function in (both, torch.compile(both, fullgraph=True, backend="aot_eager")):
        z = torch.linspace(-1, 1, 15).view(3, 5).requires_grad_()
        function(z).backward()
        gradients.append(z.grad)
    assert torch.allclose(*gradients, atol=1e-6)


def test_tensors_with_and_without_memory() -> None:
    plain = torch.ones(2, 3)
    for real in (plain, plain.t(), plain[:0], torch.nn.Parameter(plain), plain.expand(4, 2, 3)):
        assert has_memory(real)
        assert is_readable(real)
    wrapped = []
    torch.vmap(lambda row: (wrapped.append(has_memory(row)), row)[1])(plain)
    assert wrapped == [False]
    unreal = (torch._neg_view(plain), torch._efficientzerotensor((2, 3)), plain.to("meta"))
    for tensor in (*unreal, plain.to_sparse()):
        assert not has_memory(tensor)
