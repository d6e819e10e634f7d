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

_UNCHECKED = 1 << 28  # bytes; less is not checked, which saves reading a file for each batch
# Texts of the RuntimeErrors that PyTorch raises if memory runs out; only for a GPU it has an error
# class of its own. The last texts are those of oneDNN, and of cuBLAS and cuDNN.
_OUT_OF_MEMORY = re.compile(
    r"out of memory|bad_alloc|you tried to allocate|could not create a (primitive|memory)|"
    r"CU(BLAS|DNN)_STATUS_ALLOC_FAILED"
)
_FAILED = "an allocation failed"


class TooLargeError(UserError):
    """A network or a batch that is too large; the message names its largest part."""


def check_free(needed: int, device: torch.device) -> None:
    """Check that enough memory is free on a GPU, or on the machine with its swap space.

    Args:
        needed: number of bytes that are needed.
        device: the device that needs them.

    Raises:
        MemoryError: if fewer bytes are free; the message says how many.
    """
    if needed < _UNCHECKED:
        return
    free = _free_on_gpu(device) if device.type == "cuda" else _free_on_machine()
    if free is not None and needed > free:
        raise MemoryError(f"needs {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are free")


def _free_on_gpu(device: torch.device) -> int:
    """Return how many bytes are free on a GPU, including unused ones that PyTorch has reserved."""
    import torch

    free_for_all, _ = torch.cuda.mem_get_info(device)
    free_in_pytorch = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free_for_all + free_in_pytorch


def _free_on_machine() -> int | None:
    """Return how many bytes are free on the machine, with swap; None if the system does not say.

    The lower limit that a container may have (its cgroup) is not read. Linux kills a process that
    exceeds it.
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
