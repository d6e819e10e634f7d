"""torch.compile of whole graphs gives what eager execution gives."""

import shutil
from pathlib import Path

import pytest
import torch

from onmt_entmax.losses import entmax_loss
from onmt_entmax.mappings import entmax, log_entmax


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
