"""Smoke tests of the benchmarks of a GPU and of attention, on a CPU."""

import json
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, execute

KINDS = ["softmax", "1.5", "learned", "1.33", "2"]


def bench(output: Path, name: str, *options: str) -> dict:
    command = ["-m", f"tools.bench.{name}", "--quick", "--output", str(output), *options]
    done = execute([sys.executable, *command], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout.replace(" 0 failed", "")
    found = json.loads(output.read_text())
    assert [[*row["milliseconds"]][:5] for row in found["attention"]] == [KINDS, KINDS]
    return found


def test_attention(tmp_path: Path) -> None:
    bench(tmp_path / "json", "attention")


@pytest.mark.slow
def test_gpu(tmp_path: Path) -> None:
    found = bench(tmp_path / "json", "gpu", "--device", "cpu")
    contenders = [row["contender"] for row in found["steps"]]
    assert contenders[:3] == ["stock softmax", "packed 1.5", "plain 1.5"]
    assert found["decoding"][0]["compared"] > 5
    assert not found["decoding"][0]["cases"]
    times = ("losses", "bisection 1.5"), ("mappings", "bisection 1.5"), ("encoder", "loop")
    assert all(found[table][0][name] > 0 for table, name in times)
