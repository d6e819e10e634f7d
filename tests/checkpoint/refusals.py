"""The line with which a model folder is refused."""

from collections.abc import Callable

import pytest

from onmt_entmax.checkpoint import CheckpointError


def error_line(read: Callable[[], object]) -> str:
    """Return the message of the error that reading a model folder raises; it must be one line."""
    with pytest.raises(CheckpointError) as raised:
        read()
    message = str(raised.value)
    assert "\n" not in message
    return message
