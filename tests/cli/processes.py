"""Processes that tests start, watch and end."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.commands import ENVIRONMENT

PATIENCE = 120  # seconds in which a process does what a test waits for, even on a busy machine


@contextmanager
def running(*command: str, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a session of its own; at the end, kill what is left of the session.

    So the processes that the command has started end too, also if the test fails.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail if it does not in time."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the condition does not come about"
        time.sleep(0.01)


def wait_for_line(process: subprocess.Popen[str], beginning: str) -> None:
    """Read what a process prints up to a line with this beginning; fail if there is none."""
    assert process.stdout is not None
    assert any(line.startswith(beginning) for line in process.stdout), "the line does not come"
