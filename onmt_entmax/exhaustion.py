"""Turn running out of memory into an error of one line, which names what is too large."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onmt_entmax.errors import UserError

# Texts of the RuntimeErrors that PyTorch raises if memory runs out; only for a GPU it has an error
# class of its own. The last texts are those of oneDNN, and of cuBLAS and cuDNN.
_OUT_OF_MEMORY = re.compile(
    r"out of memory|bad_alloc|you tried to allocate|could not create a (primitive|memory)|"
    r"CU(BLAS|DNN)_STATUS_ALLOC_FAILED"
)
_FAILED = "an allocation failed"


class TooLargeError(UserError):
    """A network or a batch that is too large; the message names its largest part."""


@contextmanager
def named_exhaustion(describe: Callable[[], str], advice: str) -> Iterator[None]:
    """Turn errors of a block that is too large for the memory or the model into TooLargeError.

    Args:
        describe: returns the beginning of the message, which names what is too large.
        advice: the end of the message.

    Raises:
        TooLargeError: if memory ran out, or a sentence has more tokens than a Transformer has
            positions.
    """
    try:
        yield
    except Exception as error:
        reason = exhaustion(error)
        if reason is None:
            raise
        raise TooLargeError(f"{describe()}: {reason}; {advice}") from None


def exhaustion(error: Exception) -> str | None:
    """Return in a few words what an error says about memory or length; None for other errors."""
    # Compared by its name, because importing OpenNMT-py, which has the class, takes seconds.
    if type(error).__name__ == "SequenceTooLongError":
        return f"is longer than a Transformer model reads ({error})"
    if isinstance(error, MemoryError):
        return f"does not fit in memory ({str(error) or _FAILED})"
    if not isinstance(error, RuntimeError) or not _OUT_OF_MEMORY.search(str(error)):
        return None
    size = re.search(r"you tried to allocate (\d+) bytes", str(error))
    reason = f"needs {int(size[1]) / 1e9:,.1f} GB more" if size else _FAILED
    return f"does not fit in memory ({reason})"
