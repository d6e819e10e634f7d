"""The benchmark of training steps, as a command and in its parts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from onmt_entmax.errors import UserError
from tests.commands import ENVIRONMENT, ROOT
from tools.bench import batches as text


def bench(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.bench.recurrence", *map(str, options)]
    return subprocess.run(
        command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_the_contenders_compute_the_same_step() -> None:
    """Softmax here and OpenNMT-py's have the same loss on the same batch and weights."""
    small = ["--batch", 8, "--steps", 1, "--dropout", 0.0]
    variants = "1.5,1,1:bf16"
    done = bench(*small, "--variants", variants, "--warmup", 2, "--support", 9)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {line["contender"]: line for line in lines}
    assert list(found) == ["stock", "1.5", "1", "1:bf16"]
    assert found["1"]["loss"] == pytest.approx(found["stock"]["loss"], abs=2e-3)
    assert found["1:bf16"]["loss"] == pytest.approx(found["stock"]["loss"], rel=0.02)
    assert found["1"]["support"] == 776
    assert 1 <= found["1.5"]["support"] < 40
    assert found["stock"]["ratio"] == 1
    assert all(line["ms"] > 0 and line["GF"] > 0 for line in lines)


def test_a_bad_request_is_one_line(tmp_path: Path) -> None:
    wrong = (["--variants", "0.5"], ["--against", "softmax"], ["--variants", "2:b16"])
    for options in wrong:
        done = bench(*options)
        assert done.returncode == 2
        assert "numbers from 1, or stock" in done.stderr.splitlines()[-1]
    with pytest.raises(UserError, match="cannot be read"):
        text.words(tmp_path)


@pytest.mark.parametrize(
    ("read", "size", "joint"), [(text.inflection, 776, True), (text.words, 18_000, False)]
)
def test_batches_are_of_the_size_asked_for(read, size: int, joint: bool) -> None:
    pairs = read(None)
    known = text.vocabularies(pairs, size, joint)
    assert [len(side) for side in known] == [size, size]
    assert (known.source == known.target) == joint
    stream = text.batches(pairs, known, 16, 256)
    first = [next(stream) for _ in range(5)]
    again = text.batches(pairs, known, 16, 256)
    for batch in first:
        assert len(batch) == 16
        assert batch.source.equal(next(again).source)
        assert int(torch.cat([batch.source, batch.target]).max()) < size
