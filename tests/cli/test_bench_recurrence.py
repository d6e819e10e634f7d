"""The benchmark of training steps, as a command and in its parts."""

import json
import sys

import pytest

from tests.commands import ROOT, execute


@pytest.mark.slow
def test_the_contenders_compute_the_same_step() -> None:
    """Softmax here and OpenNMT-py's have the same loss on the same batch and weights."""
    small = "--batch 8 --steps 1 --dropout 0 --variants 1.5,1,1:bf16 --warmup 2 --support 9"
    command = [sys.executable, "-m", "tools.bench.recurrence", *small.split()]
    done = execute(command, ROOT)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {line["contender"]: line for line in lines}
    assert list(found) == ["stock", "1.5", "1", "1:bf16"]
    assert found["1"]["loss"] == pytest.approx(found["stock"]["loss"], abs=2e-3)
    assert found["1:bf16"]["loss"] == pytest.approx(found["stock"]["loss"], rel=0.02)
    assert found["1"]["support"] == 776
    assert 1 <= found["1.5"]["support"] < 40
    assert all(line["ms"] > 0 and line["GF"] > 0 for line in lines)
