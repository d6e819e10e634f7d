"""Smoke test of the attention benchmark on a CPU."""

import json
import sys
from pathlib import Path

from tests.commands import ROOT, execute


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
