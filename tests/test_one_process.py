"""`Processes` in one of several processes: its gradients and messages."""

import pytest
import torch

from onmt_entmax.parallel.processes import Processes


def test_a_parameter_without_a_gradient_is_not_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise this process would wait for another one."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    parameter = torch.zeros(3, requires_grad=True)
    Processes().sum_gradients([parameter])
    assert parameter.grad is None


@pytest.mark.parametrize(("rank", "printed"), [(0, "note\n"), (1, "")])
def test_only_the_first_process_prints(
    rank: int,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RANK", str(rank))
    Processes().say("note")
    assert capsys.readouterr().err == printed
