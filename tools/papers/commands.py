"""Run commands of `onmt-entmax`, and pass signals to this program on to them."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from onmt_entmax.cli import ending
from onmt_entmax.errors import UserError
from onmt_entmax.systems import ending_signals


class Stopped(Exception):
    """A signal has stopped this program."""


class Commands:
    """Runs commands, which save their state and end when a signal comes.

    Several threads may run commands; the main thread gets the signals and passes them on.

    Attributes:
        received: number of the last signal that came; 0: none.
    """

    def __init__(self) -> None:
        self.received = 0
        self._running: set[subprocess.Popen[bytes]] = set()
        # Guards `received` and `_running`: a command that starts must not miss a signal. It is
        # re-entrant, since the handler may interrupt the main thread while that holds it.
        self._changing = threading.RLock()

    @contextmanager
    def passing_signals_on(self) -> Iterator[None]:
        """Pass signals on inside the block, except for those that are ignored, as by nohup."""

        def pass_on(number: int, _: object) -> None:
            with self._changing:
                self.received = number
                for process in self._running:
                    process.send_signal(number)

        before = {
            number: signal.signal(number, pass_on)
            for number in ending_signals()
            if signal.getsignal(number) != signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def execute(self, command: Sequence[str], log: Path, core: int | None = None) -> None:
        """Run a command of `onmt-entmax` to its end.

        Args:
            command: name and arguments of the command.
            log: file to which its output is appended.
            core: processor on which it runs; None: any.

        Raises:
            Stopped: a signal came.
            UserError: the command failed.
        """
        with open(log, "ab") as output:
            start = output.seek(0, os.SEEK_END)
            process = self._start(command, output)
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            status = process.wait()
            with self._changing:
                self._running.remove(process)
        if self.received:
            raise Stopped
        if status:
            reason = _error_in(log.read_bytes()[start:].decode(errors="replace"))
            raise UserError(f"{command[0]} ended with status {status}: {reason} ({log})")

    def _start(self, command: Sequence[str], output: BinaryIO) -> subprocess.Popen[bytes]:
        """Start a command that prints to a file, and pass signals on to it from here on.

        Raises:
            Stopped: a signal came before.
        """
        with self._changing:
            if self.received:
                raise Stopped
            process = subprocess.Popen(
                [*ending.CONSOLE, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # else a terminal would signal it too
            )
            self._running.add(process)
            # On the main thread, the handler may have run since the check above: it did not find
            # the process. Other threads hold the lock for which the handler waits.
            if self.received:
                process.send_signal(self.received)
        return process


def _error_in(printed: str) -> str:
    """Return the last error line that a command printed; without one, its last line."""
    lines = printed.strip().splitlines()
    errors = [line for line in lines if ": error: " in line]
    candidates = errors or lines or ["no message"]
    return candidates[-1]
