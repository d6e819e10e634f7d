"""Run commands, and end them when all their processes together have used a limit of processor time.

This needs Linux, whose /proc has the processor time of other processes.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tools.bench.peer_systems.system import Command

_POLL = 0.5  # seconds between two looks at a command
_PATIENCE = 60  # seconds between SIGTERM and SIGKILL
TICKS = os.sysconf("SC_CLK_TCK")  # clock ticks per second, in which /proc counts
# Indices of the fields of /proc/PID/stat behind the name of the process; see proc(5).
_SESSION = 3
_TIMES = slice(11, 15)  # user and system time, of the process and of children it waited for


@dataclass(frozen=True)
class Used:
    """The time that a command used, and how it ended.

    Attributes:
        processor: processor time of all its processes together, in seconds.
        wall: time on the clock, in seconds.
        stopped: whether it reached the limit.
        status: exit status; negative: the signal that ended it.
    """

    processor: float
    wall: float
    stopped: bool
    status: int


def processor_seconds(session: int) -> float:
    """Return the processor time of the processes of a session, and of children they waited for."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            stat = path.read_text(encoding="utf-8", errors="replace")
            # The name before stands in parentheses, and may have spaces and parentheses in it.
            fields = stat.rpartition(")")[2].split()
            if int(fields[_SESSION]) == session:
                ticks += sum(map(int, fields[_TIMES]))
    return ticks / TICKS


def run(command: Command, log: Path, seconds: float | None = None) -> Used:
    """Run a command; at the limit, end it and the processes that it started.

    Args:
        command: the command to run.
        log: file for what it prints; if the command has a file for its output, only for its errors.
        seconds: limit of the processor time; None: none.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with ExitStack() as stack:
        written = stack.enter_context(log.open("wb"))
        stdin = stack.enter_context(open(command.stdin or os.devnull, "rb"))
        stdout = stack.enter_context(command.stdout.open("wb")) if command.stdout else written
        began = time.monotonic()
        process = subprocess.Popen(
            command.words,
            stdin=stdin,
            stdout=stdout,
            stderr=written,
            env=environment,
            start_new_session=True,
        )
        try:
            end = _wait(process.pid, seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # `Popen` need not wait for the process, which is reaped.
        process.returncode = os.waitstatus_to_exitcode(end.status)
    return Used(end.processor, time.monotonic() - began, end.stopped, process.returncode)


class _End(NamedTuple):
    """How a process ended.

    Attributes:
        processor: processor time of it and its children together, in seconds.
        stopped: whether it reached the limit.
        status: wait status, as `os.wait4` returns it.
    """

    processor: float
    stopped: bool
    status: int


def _wait(pid: int, seconds: float | None) -> _End:
    """Wait for a process, and end its session when that has used a limit of processor time.

    All processes of the session get SIGTERM, so that they can save their state; after `_PATIENCE`,
    SIGKILL.

    Args:
        pid: id of the process, which is also that of its session.
        seconds: the limit; None: none.
    """
    if seconds is None:
        _, status, usage = os.wait4(pid, 0)
        return _End(usage.ru_utime + usage.ru_stime, stopped=False, status=status)
    # The kernel ends it at a later limit, even if this process is killed.
    limit = math.ceil(seconds + _PATIENCE)
    resource.prlimit(pid, resource.RLIMIT_CPU, (limit, limit))
    processor = 0.0
    deadline: float | None = None  # after SIGTERM
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            # Only the session's time has that of children for which nobody waited.
            processor = max(processor, usage.ru_utime + usage.ru_stime)
            return _End(processor, stopped=deadline is not None, status=status)
        processor = processor_seconds(pid)
        if deadline is None and processor >= seconds:
            deadline = time.monotonic() + _PATIENCE
            os.killpg(pid, signal.SIGTERM)
        if deadline is not None and time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
        time.sleep(min(_POLL, seconds / 5))  # a short limit is watched more closely
