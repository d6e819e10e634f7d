"""The benchmark of training steps, as a command and in its parts."""

import json
import subprocess
import sys

import pytest
import torch

from tests.commands import ROOT, execute
from tests.ended import ended, refused
from tools.bench import batches as text
from tools.bench import recurrence, search


def bench(*options: object) -> subprocess.CompletedProcess[str]:
    return execute([sys.executable, "-m", "tools.bench.recurrence", *map(str, options)], ROOT)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--variants", "0.5"], "numbers from 1, or stock"),
        (["--against", "softmax"], "numbers from 1, or stock"),
        (["--variants", "2:b16"], "numbers from 1, or stock"),
        (["--batch", "0"], "--batch: must be a whole number from 1"),
        (["--dropout", "1"], "--dropout: must be at least 0 and below 1"),
        (["--size", "words", "--data", "nowhere"], "cannot be read"),
    ],
)
def test_a_bad_request_is_one_line(options: list[str], message: str, capsys) -> None:
    assert ended(recurrence.main, options) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("option", ["--batch", "--sentences", "--beam", "--threads"])
def test_no_benchmark_of_nothing(option: str) -> None:
    line = refused(search.main, [option, "0"])
    assert f"argument {option}: must be a whole number from 1" in line


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
