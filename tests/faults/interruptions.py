"""Interruptions of a process: a signal that ends it, or a disk that is full.

`interrupted_calls.py` chooses the cases, and judges what they leave.
"""

import resource
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from tests.commands import CONSOLE, ENVIRONMENT
from tests.faults.attacked_calls import bug

# Seconds that a process may take, also after a signal, on a busy machine; a longer one hangs.
_LONGEST = 300


class Signal(NamedTuple):
    """A signal, and when it comes."""

    number: signal.Signals
    seconds: float
    """Since the start of the process."""

    def __str__(self) -> str:
        return f"{self.number.name} at {self.seconds:.2f}"

    @property
    def kills(self) -> bool:
        """Whether the process ends at once, without tidying up."""
        return self.number == signal.SIGKILL

    def restrict_process(self) -> None:
        """Restrict nothing."""

    def end(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        """Wait for the time of the signal, and send it; return what the process printed."""
        try:
            return process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(self.number)
            return process.communicate(timeout=_LONGEST)

    def failure(self, done: subprocess.CompletedProcess[str]) -> str | None:
        """Say how the process ended, if it was neither well nor by the signal."""
        if done.returncode in (0, -self.number, 128 + self.number) and (
            "Traceback" not in done.stderr
        ):
            return None
        return f"status {done.returncode}: {done.stderr[-200:]}"


class FullDisk(NamedTuple):
    """A disk with too little room."""

    limit: int
    """Bytes that each file can have."""

    def __str__(self) -> str:
        return f"full disk after {self.limit} bytes"

    @property
    def kills(self) -> bool:
        """A process on a full disk ends by itself."""
        return False

    def restrict_process(self) -> None:
        """Let no file of this process grow beyond the limit."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))

    def end(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        """Wait for the end, and kill a process that hangs; return what the process printed."""
        return Signal(signal.SIGKILL, _LONGEST).end(process)

    def failure(self, done: subprocess.CompletedProcess[str]) -> str | None:
        """Say what the process printed that a user must never see."""
        return bug(done)


Interruption = Signal | FullDisk


def run_interrupted(
    arguments: Sequence[str], interruption: Interruption
) -> subprocess.CompletedProcess[str]:
    """Run a command of the console that a signal ends, or that finds its disk full."""
    with subprocess.Popen(
        [*CONSOLE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=interruption.restrict_process,
    ) as process:
        try:
            printed = interruption.end(process)
        finally:
            process.kill()  # without effect on one that has ended
    return subprocess.CompletedProcess([], process.returncode, *printed)
