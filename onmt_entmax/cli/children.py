"""Commands that run other commands: a child saves its state and ends when its parent is ended."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from onmt_entmax.cli import ending

# Environment variables of a process that is a part of another one: of `run_command`, of torchrun.
_PART, _WORKER = "ONMT_ENTMAX_PART", "WORLD_SIZE"
_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_PATIENCE = 1  # seconds in which a terminal's signal has surely reached the child too


def run_command(*words: object) -> None:
    """Show a command of the package and run it in a process of its own.

    Signals that would end this process end the child, which saves its state, and then this process:
    an interrupt raises KeyboardInterrupt, others SystemExit with 128 plus the signal.

    Raises:
        subprocess.CalledProcessError: it failed, and has said why.
    """
    command = list(map(str, words))
    with _collected() as received:
        print(f"$ onmt-entmax {shlex.join(command)}", flush=True)
        # As an attribute, because tests replace it.
        process = subprocess.Popen([*ending.CONSOLE, *command], env={**os.environ, _PART: "1"})
        status = _waited(process, received)
    if received:
        print("stopped; the same command continues", file=sys.stderr, flush=True)
        if received[0] == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + received[0])
    if status:
        raise subprocess.CalledProcessError(status, command)


@contextmanager
def _collected() -> Iterator[list[int]]:
    """Collect the numbers of signals in a list; ignored signals stay ignored, as after `nohup`."""
    received: list[int] = []

    def collect(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {
        number: signal.signal(number, collect)
        for number in _SIGNALS
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _waited(process: subprocess.Popen[bytes], received: Sequence[int]) -> int:
    """Return the exit status of a child; SIGTERM ends it once after the first signal.

    A terminal interrupts the child itself. To pass on that interrupt would be a second one, after
    which training does not wait to save its state.
    """
    while True:
        try:
            return process.wait(0.2 if not received else _PATIENCE)
        except subprocess.TimeoutExpired:
            if received:
                process.terminate()
                return process.wait()


def end_with_parent() -> None:
    """Send this process SIGTERM when the one that it is a part of ends, even if that is killed.

    Training then saves its state and ends. Other processes may outlive their parent, such as a
    shell.
    """
    if not {_PART, _WORKER} & os.environ.keys():
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
