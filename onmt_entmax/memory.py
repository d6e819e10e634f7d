"""Free memory, and errors in one line for what does not fit in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onmt_entmax.errors import UserError

if TYPE_CHECKING:
    import torch

_SMALL = 1 << 28  # bytes; nobody need ask whether these are free


class TooLargeError(UserError):
    """A network or a batch that does not fit in memory; the message names its largest part."""


def free_bytes(device: torch.device) -> int:
    """Return the memory that is free on a GPU, or for this process on the machine.

    On the machine swap counts too, and the limits of control groups, as containers have them. A
    system that does not tell has no limit.
    """
    if device.type == "cuda":
        import torch

        # Reserved by PyTorch, but free for its tensors.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    return min([_free_on_machine(), *_free_in_groups()])


def most_reserved(device: torch.device) -> int:
    """Return the most bytes of a GPU that PyTorch has held in this process; 0 of other devices."""
    if device.type != "cuda":
        return 0
    import torch

    return torch.cuda.max_memory_reserved(device)


_UNKNOWN = 1 << 62


def _free_on_machine() -> int:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return _UNKNOWN
    free = re.findall(r"^(?:MemAvailable|SwapFree):\s+(\d+) kB$", text, re.MULTILINE)
    return sum(map(int, free)) * 1024 if len(free) == 2 else _UNKNOWN


# Names of a control group's limit, use, and part of the use that the system can take back.
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = ("memory.max", "memory.current", "inactive_file")


def _free_in_groups() -> Iterator[int]:
    """Yield what is free in each control group with a limit that this process is in."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        number, kinds, path = line.split(":", 2)
        if number != "0" and "memory" not in kinds.split(","):
            continue
        names, root = (_V2, "/sys/fs/cgroup") if number == "0" else (_V1, "/sys/fs/cgroup/memory")
        group = Path(root + path)
        for folder in [group, *group.parents]:
            if folder.is_relative_to(root):
                yield from _free_in_group(folder, names)


def _free_in_group(folder: Path, names: tuple[str, str, str]) -> Iterator[int]:
    limit, used, reclaimable = names
    try:
        most = (folder / limit).read_text(encoding="ascii").strip()
        if most.isdecimal():
            statistics = (folder / "memory.stat").read_text(encoding="ascii")
            cached = re.search(rf"^{reclaimable} (\d+)$", statistics, re.MULTILINE)
            taken = int((folder / used).read_text(encoding="ascii"))
            yield int(most) - taken + (int(cached[1]) if cached else 0)
    except (OSError, ValueError):  # no such group here, or another format
        return


def check_free(needed: int, device: torch.device) -> None:
    """Check that so many bytes are free; of small numbers nothing is read.

    Raises:
        MemoryError: they are not; the message says how many are.
    """
    if needed < _SMALL:
        return
    free = free_bytes(device)
    if needed > free:
        raise MemoryError(f"needs {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are free")


@contextmanager
def named_exhaustion(what: Callable[[], str], advice: str) -> Iterator[None]:
    """Raise an error with a name for what does not fit, if memory runs out inside the block.

    Args:
        what: returns the beginning of the message.
        advice: the end of the message.

    Raises:
        TooLargeError: memory ran out.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        reason = exhaustion(error)
        if reason is None:
            raise
        raise TooLargeError(f"{what()}: does not fit in memory ({reason}); {advice}") from None


def exhaustion(error: Exception) -> str | None:
    """Return in a few words that memory ran out; None for other errors.

    PyTorch has no class of its own for it on the CPU.
    """
    if not isinstance(error, (MemoryError, RuntimeError)):
        return None
    text = str(error)
    if isinstance(error, MemoryError):
        return text or "an allocation failed"
    found = re.search(r"you tried to allocate (\d+) bytes", text)
    if found is not None:
        return f"needs {int(found[1]) / 1e9:,.1f} GB more"
    return "an allocation failed" if re.search(r"out of memory|bad_alloc", text) else None
