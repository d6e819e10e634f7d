"""What does not fit in memory is refused in one line that names it."""

import dataclasses
from pathlib import Path

import pytest
import torch

from onmt_entmax.errors import TooLargeError, exhaustion, named_exhaustion
from onmt_entmax.model import refuse_too_large
from tests.commands import fail
from tests.models import SMALL, VOCABULARIES
from tests.toy import write_config

CPU = torch.device("cpu")
PRIMITIVE = "could not create a primitive"  # of oneDNN


def test_errors_of_exhausted_memory_are_told_from_others() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert exhaustion(caught.value) == "does not fit in memory (needs 1,152,921,504.6 GB more)"
    for error in (MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried")):
        assert exhaustion(error) == "does not fit in memory (an allocation failed)"
    assert exhaustion(RuntimeError(PRIMITIVE)) == "does not fit in memory (an allocation failed)"
    assert exhaustion(RuntimeError("shapes differ")) is None
    assert exhaustion(ValueError("out of memory")) is None
    line = pytest.raises(TooLargeError, match=r"^line 3: does not fit in memory \(.*\); split it$")
    with line, named_exhaustion(lambda: "line 3", "split it"):
        raise RuntimeError(PRIMITIVE)
    with pytest.raises(RuntimeError, match="shapes"), named_exhaustion(lambda: "line 3", ""):
        raise RuntimeError("shapes differ")


def test_sizes_beyond_any_memory(tmp_path: Path) -> None:
    with pytest.raises(
        TooLargeError, match=r"the network of about [\d,]+ weights: .*make rnn_size"
    ):
        refuse_too_large(dataclasses.replace(SMALL, rnn_size=10**6), VOCABULARIES)
    refuse_too_large(SMALL, VOCABULARIES, copies=4)
    config = write_config(tmp_path)
    for flags, said in ((["1000000"], "the network of about"), (["1000000000"], "must be")):
        message = fail("train.py", "-config", config, "-rnn_size", *flags)
        assert said in message
        assert message.count("\n") <= 1
    assert not list((tmp_path / "run").glob("step_*"))


def test_a_long_line_of_training_is_named(tmp_path: Path) -> None:
    config = write_config(tmp_path, batch_size=8)
    for side in ("src", "tgt"):
        path = tmp_path / f"train.{side}"
        lines = path.read_text().splitlines()
        lines[99] = "a " * 100_000
        path.write_text("\n".join(lines) + "\n")
    message = fail("train.py", "-config", config)
    assert "train.src" in message
    assert "filtertoolong" in message
