"""A network or a batch that cannot fit in memory is refused before memory is asked for it."""

import dataclasses
from pathlib import Path

import pytest

from onmt_entmax.exhaustion import TooLargeError
from onmt_entmax.memory import refuse_too_large
from tests.commands import fail
from tests.models import BRNN, VOCABULARIES
from tests.toy import write_config


def test_a_network_beyond_any_memory_is_refused() -> None:
    huge = dataclasses.replace(BRNN, rnn_size=10**6)
    message = r"the network of about [\d,]+ weights: .*make rnn_size"
    with pytest.raises(TooLargeError, match=message):
        refuse_too_large(huge, VOCABULARIES)


def test_a_small_network_is_not_refused() -> None:
    refuse_too_large(BRNN, VOCABULARIES, copies=4)


def test_a_training_of_a_network_beyond_any_memory_is_refused(tmp_path: Path) -> None:
    line = fail("train.py", "-config", write_config(tmp_path), "-rnn_size", 10**6)
    assert "the network of about" in line
    assert "weights: does not fit in memory" in line


def test_a_long_line_of_training_is_named(tmp_path: Path) -> None:
    """The attention of 100,000 tokens to as many, in a batch of 8, needs more than a terabyte."""
    config = write_config(tmp_path, batch_size=8)
    for side in ("src", "tgt"):
        path = tmp_path / f"train.{side}"
        lines = path.read_text().splitlines()
        lines[99] = "a " * 100_000
        path.write_text("\n".join(lines) + "\n")
    message = fail("train.py", "-config", config)
    assert f"{tmp_path}/train.src, {tmp_path}/train.tgt: line 100: " in message
    assert "filtertoolong" in message
