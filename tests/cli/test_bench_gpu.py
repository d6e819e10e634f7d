"""Smoke test of the GPU benchmark on a CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_runs_on_a_cpu(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    command = ["-m", "tools.bench.gpu", "--device", "cpu", "--quick", "--output", str(output)]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout
    found = json.loads(output.read_text())
    contenders = [row["contender"] for row in found["steps"]]
    assert contenders[:3] == ["stock softmax", "packed 1.5", "plain 1.5"]
    assert found["decoding"][0]["compared"] > 5
    assert not found["decoding"][0]["cases"]
    for table in ("losses", "mappings"):
        assert found[table][0]["bisection 1.5"] > 0  # of entmax 1.3
    assert found["encoder"][0]["loop"] > 0
    assert len(found["attention"]) == 2
    assert set(found["attention"][0]["milliseconds"]) >= {"softmax", "1.5", "learned"}
