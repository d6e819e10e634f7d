"""Turn running out of memory into an error of one line, which names what is too large."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onmt_entmax.errors import UserError

if TYPE_CHECKING:
    import torch

_UNCHECKED = 1 << 28  # bytes; smaller needs are not checked, which saves reading a file each time
# What a RuntimeError of PyTorch says if memory ran out; the CPU has no class of its own for it. The
# last texts are those of oneDNN, and of cuBLAS and cuDNN.
_OUT_OF_MEMORY = re.compile(
    r"out of memory|bad_alloc|you tried to allocate|could not create a (primitive|memory)|"
    r"CU(BLAS|DNN)_STATUS_ALLOC_FAILED"
)
_FAILED = "an allocation failed"


class TooLargeError(UserError):
    """A network or a batch that is too large; the message names its largest part."""


def check_free(needed: int, device: torch.device) -> None:
    """Check that so many bytes are free on a GPU or, with swap, on the machine.

    Raises:
        MemoryError: they are not; the message says how many are.
    """
    if needed < _UNCHECKED:
        return
    free = _free_on_gpu(device) if device.type == "cuda" else _free_on_machine()
    if free is not None and needed > free:
        raise MemoryError(f"needs {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are free")


def _free_on_gpu(device: torch.device) -> int:
    """Return the bytes that are free on a GPU, those that PyTorch keeps for itself included."""
    import torch

    free_for_all, _ = torch.cuda.mem_get_info(device)
    free_in_pytorch = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free_for_all + free_in_pytorch


def _free_on_machine() -> int | None:
    """Return the bytes that are free on the machine, with swap; None if the system hides it.

    The lower limit that a container may have (its cgroup) is not read: beyond that, Linux kills the
    process.
    """
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:  # such as on Windows and macOS
        return None
    kilobytes = dict(re.findall(r"(Mem\w+|Swap\w+):\s+(\d+) kB", text))
    if "MemAvailable" not in kilobytes:  # Linux before 3.14, some containers
        return None
    return 1024 * (int(kilobytes["MemAvailable"]) + int(kilobytes.get("SwapFree", 0)))


@contextmanager
def named_exhaustion(describe: Callable[[], str], advice: str) -> Iterator[None]:
    """Turn errors of a block that is too large for the memory or the model into TooLargeError.

    Args:
        describe: returns the beginning of the message, which names what is too large.
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
        raise TooLargeError(f"{describe()}: {reason}; {advice}") from None


def exhaustion(error: Exception) -> str | None:
    """Return in a few words why something is too large, by an error; None for other errors."""
    # By its name, because OpenNMT-py takes seconds to load.
    if type(error).__name__ == "SequenceTooLongError":
        return f"is longer than a Transformer model reads ({error})"
    if isinstance(error, MemoryError):
        return f"does not fit in memory ({str(error) or _FAILED})"
    if not isinstance(error, RuntimeError) or not _OUT_OF_MEMORY.search(str(error)):
        return None
    size = re.search(r"you tried to allocate (\d+) bytes", str(error))
    reason = f"needs {int(size[1]) / 1e9:,.1f} GB more" if size else _FAILED
    return f"does not fit in memory ({reason})"
