"""Reading options of training from a file and from flags, and checking errors of one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.options.given import Options
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.train import training_options
from onmt_entmax.options.values import OptionError

LONGEST_ERROR = 400  # characters: a few lines of a terminal, whatever the value is


def read_training(folder: Path, text: str, *flags: str) -> Options:
    """Return the options of training in `c.yaml`, of a corpus and this text, and in flags."""
    path = folder / "c.yaml"
    path.write_text("data: {c: {path_src: a, path_tgt: b}}\n" + text)
    return read_options(training_options(), ["-config", str(path), *flags])


def refusal(call: Callable[[], object], pattern: str) -> str:
    """Check that a call raises an error of one short line that has a pattern; return the line."""
    with pytest.raises(OptionError, match=pattern) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < LONGEST_ERROR
    return text
