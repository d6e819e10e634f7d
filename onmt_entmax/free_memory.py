"""Free memory: on a GPU, or on the machine within the limits of a container.

A container is a control group of Linux, which has a limit of its own. Linux kills a process that
exceeds it. Groups are nested, and a process obeys the limits of all groups around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

_UNCHECKED = 1 << 28  # bytes; less is not checked, which saves reading files for each batch
_MACHINE = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


class _GroupFiles(NamedTuple):
    """Files of a control group, whose names depend on the version of control groups.

    Attributes:
        limit: bytes that the group may use; `max` if it has no limit.
        used: bytes that the group uses, copies of files included.
        cached: names in `memory.stat` for copies of files, which Linux drops when it needs memory.
    """

    limit: str
    used: str
    cached: tuple[str, str]


_VERSION_1 = _GroupFiles(
    "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")
)
_VERSION_2 = _GroupFiles("memory.max", "memory.current", ("active_file", "inactive_file"))


def check_free(needed: int, device: torch.device) -> None:
    """Check that enough memory is free on a GPU, or for this process on the machine.

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
    """Return how many bytes this process can still get; None if the system does not say.

    Free swap space counts. A group may allow less of it, which is not read: a network that would
    fit must not be refused.
    """
    text = _content(_MACHINE)
    kilobytes = dict(re.findall(r"(Mem\w+|Swap\w+):\s+(\d+) kB", text))
    if "MemAvailable" not in kilobytes:  # Windows, macOS, Linux before 3.14, some containers
        return None
    available = 1024 * int(kilobytes["MemAvailable"])
    swap = 1024 * int(kilobytes.get("SwapFree", 0))
    return min([available, *_free_in_groups()]) + swap


def _free_in_groups() -> Iterator[int]:
    """Yield how many bytes are left in each control group of this process that has a limit."""
    for line in _content(_OWN_GROUPS).splitlines():
        # Number of a hierarchy, its controllers, and the path of the group: `4:memory:/a/b`. The
        # only hierarchy of version 2 names no controllers.
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _GROUPS / "memory" if controllers else _GROUPS
        names = [name for name in path.split("/") if name not in ("", "..")]
        # In a container, the path may be that of the host. Then only the root is there, and it is
        # the container's own group.
        for depth in range(len(names) + 1):
            free = _free_in_group(
                root.joinpath(*names[:depth]), _VERSION_1 if controllers else _VERSION_2
            )
            if free is not None:
                yield free


def _free_in_group(group: Path, files: _GroupFiles) -> int | None:
    """Return how many bytes are left in a control group; None if it has no limit, or is not there.

    Args:
        group: the folder of the group.
        files: the names of its files.
    """
    limit, used = _content(group / files.limit).strip(), _content(group / files.used).strip()
    if not limit.isdecimal() or not used.isdecimal():
        return None
    statistics = dict(re.findall(r"^(\w+) (\d+)$", _content(group / "memory.stat"), re.MULTILINE))
    cached = sum(int(statistics.get(name, 0)) for name in files.cached)
    return max(int(limit) - int(used) + cached, 0)


def _content(path: Path) -> str:
    """Return the text of a file of the system; an empty one if it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
