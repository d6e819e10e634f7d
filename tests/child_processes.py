"""Child processes and their states, as Linux lists them under /proc."""

from contextlib import suppress
from pathlib import Path

import pytest


def children_of(pid: int) -> list[int]:
    """Return the live child processes of a process; skip the test where they cannot be found."""
    if not Path("/proc/thread-self/children").exists():  # an option of the kernel
        pytest.skip("finds processes through /proc")
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            children += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in children if is_alive(child)]


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended may still be listed, as a zombie."""
    with suppress(OSError):  # it is not listed
        # `PID (NAME) STATE ...`, where the name may have spaces and brackets.
        _, _, after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return after_name.split()[0] != "Z"
    return False
