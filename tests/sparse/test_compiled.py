"""torch.compile of whole graphs gives what eager execution gives."""

import shutil
from pathlib import Path

import pytest
import torch

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax


@pytest.mark.parametrize("alpha", [1.0, 1.01, 1.33, 1.5, 2.0, 2.5])
def test_whole_graphs(alpha: float) -> None:
    target = torch.randint(20, (6,))

    def several(z: torch.Tensor) -> torch.Tensor:
        result = entmax(z * 2, alpha)
        logs = log_entmax(z, alpha).clamp_min(-30.0)
        smooth = entmax_loss(z, target, alpha, label_smoothing=0.1)
        return (result * logs).sum() + smooth + entmax_loss(z, result, alpha)

    scores = torch.randn(6, 20)
    outcomes = []
    for function in (several, torch.compile(several, fullgraph=True, backend="aot_eager")):
        z = scores.clone().requires_grad_()
        value = function(z)
        value.backward()
        outcomes.append((value.detach(), z.grad))
    assert torch.allclose(outcomes[0][0], outcomes[1][0], atol=1e-5)
    assert torch.allclose(outcomes[0][1], outcomes[1][1], atol=1e-5)


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.slow
def test_whole_graphs_by_inductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default backend, which writes C++ and compiles it."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    target = torch.randint(20, (6,))

    def loss(z: torch.Tensor) -> torch.Tensor:
        return entmax_loss(z * 2, target)

    scores = torch.randn(6, 20)
    outcomes = []
    for function in (loss, torch.compile(loss, fullgraph=True)):
        z = scores.clone().requires_grad_()
        function(z).backward()
        outcomes.append(z.grad)
    assert torch.allclose(*outcomes, atol=1e-5)


@pytest.mark.parametrize("operator", ["entmax", "log_entmax", "conjugate"])
@pytest.mark.parametrize("alpha", [1.05, 1.5, 2.0])
def test_operators_obey_pytorchs_rules(operator: str, alpha: float) -> None:
    function = getattr(torch.ops.onmt_entmax, operator).default
    scores = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(function, (scores, alpha))
    if operator != "conjugate":  # of contiguous scores
        turned = torch.rand(5, 3, dtype=torch.float64).t().requires_grad_()
        torch.library.opcheck(function, (turned, alpha))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dim", [0, 1])
def test_any_dimension_compiles(backend: str, dim: int, tmp_path: Path, monkeypatch) -> None:
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor needs a C++ compiler")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    weights = torch.randn(6, 7, 4)

    def function(z: torch.Tensor) -> torch.Tensor:
        return (entmax(z, 1.5, dim) * weights).reshape(-1).square().sum()

    outcomes = []
    for each in (function, torch.compile(function, fullgraph=True, backend=backend)):
        z = torch.linspace(-2, 2, 168).reshape(6, 7, 4).sin().requires_grad_()
        each(z).backward()
        outcomes.append(z.grad)
    assert torch.allclose(*outcomes, atol=1e-6)


@pytest.mark.parametrize("kind", ["real", "symbolic"])
def test_what_is_traced_is_the_operator_and_not_its_memory(kind: str) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    first, second = torch.randn(3, 5), torch.randn(3, 5)
    graph = make_fx(lambda z: entmax(z * 2, 1.5), tracing_mode=kind)(first)
    assert torch.equal(graph(second), entmax(second * 2, 1.5))


def test_fake_tensors_have_a_shape_and_no_data() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert entmax(torch.randn(3, 5), 1.5).shape == (3, 5)
        loss = entmax_loss(torch.randn(3, 5), torch.zeros(3, dtype=torch.int64))
        assert loss.shape == ()


def test_a_vectorised_jacobian_is_the_one_row_by_row() -> None:
    scores = torch.randn(6, dtype=torch.float64)
    rows = torch.autograd.functional.jacobian(entmax, scores)
    assert torch.allclose(torch.autograd.functional.jacobian(entmax, scores, vectorize=True), rows)


def test_another_default_device_does_not_matter() -> None:
    scores = torch.randn(3, 5, requires_grad=True)
    target = torch.tensor([0, 4, 2])
    with torch.device("meta"):
        loss = entmax_loss(scores, target)
        loss.backward()
    assert torch.equal(loss, entmax_loss(scores, target))
