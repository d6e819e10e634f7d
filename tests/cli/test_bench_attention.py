"""Smoke test of the attention benchmark on a CPU."""

import json
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.commands import ROOT, execute
from tools.bench import attention


def test_runs_on_a_cpu(tmp_path: Path) -> None:
    output = tmp_path / "attention.json"
    command = ["-m", "tools.bench.attention", "--quick", "--output", str(output)]
    done = execute([sys.executable, *command], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(output.read_text())
    assert len(found["attention"]) == 2
    for row in found["attention"]:
        times = row["milliseconds"]
        assert list(times)[:5] == ["softmax", "1.5", "learned", "1.33", "2"]
        assert all(isinstance(taken, float) for taken in times.values())


def test_only_a_peer_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*tensors: torch.Tensor) -> torch.Tensor:
        raise KeyError("no such kernel")

    def measured(name: str) -> dict[str, float | str]:
        found = {"softmax": scaled_dot_product_attention, name: broken}
        monkeypatch.setattr(attention, "contenders", lambda *arguments: found)
        where = torch.device("cpu"), torch.float32
        return attention.measure(attention.SMALL[0], *where, 0.0, "cpu")

    assert measured("adasplash")["adasplash"] == "'no such kernel'"
    with pytest.raises(KeyError, match="no such kernel"):
        measured("1.5")
