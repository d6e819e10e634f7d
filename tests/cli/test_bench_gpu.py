"""Smoke test of the GPU benchmark on a CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.bench import gpu

ROOT = Path(__file__).resolve().parent.parent.parent


def test_runs_on_a_cpu(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    command = ["-m", "tools.bench.gpu", "--device", "cpu", "--quick", "--output", str(output)]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout
    found = json.loads(output.read_text())
    contenders = [row["contender"] for row in found["steps"]]
    assert contenders[:3] == ["stock softmax", "packed 1.5", "plain 1.5"]
    assert contenders[3:6] == ["graph 1.5", "graph 1.33", "graph 1"]
    assert contenders[6:8] == ["stock softmax", "packed 1.5"]
    assert contenders[8:] == ["plain 1.5", "graph 1.5", "graph learned", "graph 1"]
    assert found["decoding"][0]["compared"] > 5
    assert not found["decoding"][0]["cases"]
    for table in ("losses", "mappings"):
        assert found[table][0]["bisection 1.5"] > 0  # of entmax 1.3
    assert found["encoder"][0]["loop"] > 0
    assert len(found["attention"]) == 2
    assert set(found["attention"][0]["milliseconds"]) >= {"softmax", "1.5", "learned"}


def test_another_process_goes_on_where_the_gpu_broke(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process cannot use the device after the first part; the others lose nothing."""
    output = tmp_path / "gpu.json"
    command = ["gpu.py", "--device", "cpu", "--quick", "--only", "losses,steps-2,decoding"]
    monkeypatch.setattr(sys, "argv", [*command, "--contenders", "graph", "--output", str(output)])
    monkeypatch.setattr(gpu.Device, "works", lambda device: False)
    monkeypatch.chdir(ROOT)
    assert gpu.main() == 1
    found = json.loads(output.read_text())
    assert [row["contender"] for row in found["steps"]] == ["graph 1.5"]  # then it broke
    assert len(found["losses"]) == 2
    assert found["decoding"][0]["words"] == 41
