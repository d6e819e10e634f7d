"""Errors that a user can fix, memory that runs out among them, and the wording of messages."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Categories of Unicode: control characters, halves of surrogate pairs, line and paragraph ends.
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")
_FAILED = "an allocation failed"
_DIRECTION = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class UserError(ValueError):
    """An error that the user can fix; the message says in one line what is wrong and where.

    Commands print it without a traceback. Each module derives its own errors from it.
    """


def printable(text: str) -> str:
    """Return a text in one line that a terminal shows as it is.

    Control characters, line ends and marks that change the direction of writing are escaped: names
    of files, tokens and options may come from a stranger.
    """
    if text.isprintable():  # as most texts are, and none with a character that is escaped
        return text
    return "".join(map(_printable, text))


def _printable(character: str) -> str:
    """Return a character, or its escape, such as `\\t`."""
    if unicodedata.category(character) in _UNPRINTABLE or character in _DIRECTION:
        return ascii(character)[1:-1]
    return character


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` with the shortest known word that starts so, or one like it.

    If no word is similar, return an empty string.
    """
    words = list(known)
    # Shorter words begin too many others.
    longer = [name for name in words if len(word) > 2 and name.startswith(word)]
    if longer:
        return f"; did you mean {min(longer, key=len)!r}?"
    similar = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def counted(number: int, noun: str) -> str:
    """Return `1 sentence`, `2,000 sentences`, `0 batches` or `3 epochs`."""
    if number == 1:
        return f"1 {noun}"
    plural = "es" if noun.endswith(("tch", "s", "x")) else "s"
    return f"{number:,} {noun}{plural}"


class TooLargeError(UserError):
    """A network or a batch that is too large; the message names its largest part."""


def check_free(needed: int, device: torch.device) -> None:
    """Check that so many bytes are free on a GPU or, with swap, on the machine.

    Raises:
        MemoryError: they are not; the message says how many are.
    """
    if needed < 1 << 28:  # bytes, too few to check
        return
    if device.type == "cuda":
        import torch

        # Reserved by PyTorch, but free for its tensors.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = torch.cuda.mem_get_info(device)[0] + kept
    else:
        try:
            text = Path("/proc/meminfo").read_text(encoding="ascii")
        except OSError:  # a system that does not tell
            return
        free = 1024 * sum(map(int, re.findall(r"(?:MemAvailable|SwapFree):\s+(\d+) kB", text)))
    if needed > free:
        raise MemoryError(f"needs {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are free")


@contextmanager
def named_exhaustion(what: Callable[[], str], advice: str) -> Iterator[None]:
    """Turn errors of a block that is too large for the memory or the model into TooLargeError.

    Args:
        what: returns the beginning of the message.
        advice: the end of the message.

    Raises:
        TooLargeError: memory ran out, or a sentence is longer than a Transformer's positions.
    """
    try:
        yield
    except Exception as error:
        reason = exhaustion(error)
        if reason is None:
            raise
        raise TooLargeError(f"{what()}: {reason}; {advice}") from None


def exhaustion(error: Exception) -> str | None:
    """Return in a few words what is too large; None for other errors."""
    # By its name, because OpenNMT-py takes seconds to load.
    if type(error).__name__ == "SequenceTooLongError":
        return f"is longer than a Transformer model reads ({error})"
    if isinstance(error, MemoryError):
        return f"does not fit in memory ({str(error) or _FAILED})"
    # The CPU has no class of its own for it; the last text is oneDNN's.
    texts = r"out of memory|bad_alloc|you tried to allocate|could not create a (primitive|memory)"
    if not isinstance(error, RuntimeError) or not re.search(texts, str(error)):
        return None
    size = re.search(r"you tried to allocate (\d+) bytes", str(error))
    reason = f"needs {int(size[1]) / 1e9:,.1f} GB more" if size else _FAILED
    return f"does not fit in memory ({reason})"
