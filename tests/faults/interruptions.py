"""Interruptions of a process: a signal that ends it, or a disk that is full.

`interrupted_calls.py` chooses the cases, and judges what they leave.
"""

import resource
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from tests.commands import CONSOLE, ENVIRONMENT

# Seconds that a process may take, also after a signal, on a busy machine; a longer one hangs.
_LONGEST = 300


class Signal(NamedTuple):
    """A signal, and when it comes."""

    number: signal.Signals
    seconds: float
    """Since the start of the process."""

    def __str__(self) -> str:
        return f"{self.number.name} at {self.seconds:.2f}"


class FullDisk(NamedTuple):
    """A disk with too little room."""

    limit: int
    """Bytes that each file can have."""

    def __str__(self) -> str:
        return f"full disk after {self.limit} bytes"

    def restrict_process(self) -> None:
        """Let no file of this process grow beyond the limit."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))


Interruption = Signal | FullDisk


def run_interrupted(
    arguments: Sequence[str], interruption: Interruption
) -> subprocess.CompletedProcess[str]:
    """Run a command of the console that a signal ends, or that finds its disk full."""
    with subprocess.Popen(
        [*CONSOLE, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        preexec_fn=interruption.restrict_process if isinstance(interruption, FullDisk) else None,
    ) as process:  # fmt: skip
        try:
            printed = _end(process, interruption)
        finally:
            process.kill()  # without effect on one that has ended
    return subprocess.CompletedProcess([], process.returncode, *printed)


def _end(process: subprocess.Popen[str], interruption: Interruption) -> tuple[str, str]:
    """Wait until a process ends, or end it by its signal; return what it printed.

    A process that hangs on a full disk is killed, as its status then says.
    """
    if isinstance(interruption, FullDisk):
        interruption = Signal(signal.SIGKILL, _LONGEST)
    try:
        return process.communicate(timeout=interruption.seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(interruption.number)
        return process.communicate(timeout=_LONGEST)
