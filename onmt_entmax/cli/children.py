"""Run commands in child processes, which save their state and end when their parent ends."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from onmt_entmax.cli import ending
from onmt_entmax.systems import ending_signals

# Environment variables of a process that is to end with its parent.
_PARENT = "ONMT_ENTMAX_PARENT"  # process id of the parent; set by `run_command`
_WORKER = "WORLD_SIZE"  # set by torchrun
_PATIENCE = 1  # seconds; by then, a signal of the terminal has surely reached the child, too
_LOOK = 0.2  # seconds between two looks at the signals that this process received
_WATCH = 1  # seconds between two looks at the parent


def run_command(*words: object) -> None:
    """Print a command of the package, and run it in a process of its own.

    A signal that would end this process first ends the child, which saves its state. Then an
    interrupt raises KeyboardInterrupt here, and any other signal raises SystemExit with 128 plus
    its number.

    Args:
        words: the command and its arguments, such as `train`, `-config` and a path.

    Raises:
        subprocess.CalledProcessError: it failed, and has said why.
    """
    command = list(map(str, words))
    with _collecting_signals() as received:
        print(f"$ onmt-entmax {shlex.join(command)}", flush=True)
        environment = {**os.environ, _PARENT: str(os.getpid())}
        # `CONSOLE` is read from its module now, since tests replace it there.
        process = subprocess.Popen([*ending.CONSOLE, *command], env=environment)
        status = _wait_for(process, received)
    if received:
        print("stopped; the same command continues", file=sys.stderr, flush=True)
        if received[0] == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + received[0])
    if status:
        raise subprocess.CalledProcessError(status, command)


@contextmanager
def _collecting_signals() -> Iterator[list[int]]:
    """Collect the numbers of ending signals in a list, in place of their effects.

    Ignored signals stay ignored, as after `nohup`.
    """
    received: list[int] = []

    def collect(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {
        number: signal.signal(number, collect)
        for number in ending_signals()
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for(process: subprocess.Popen[bytes], received: Sequence[int]) -> int:
    """Wait until a child ends; return its exit status.

    After the first signal, the child has `_PATIENCE` seconds to end by itself, since a terminal
    sends its signals to the child, too. Then it gets SIGTERM, once. The signal itself is not passed
    on: a training ends at once, without saving its state, if it is interrupted twice.

    Args:
        process: the child.
        received: numbers of the signals that this process has received; signal handlers add to it.
    """
    while not received:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_LOOK)
    with suppress(subprocess.TimeoutExpired):
        return process.wait(timeout=_PATIENCE)
    process.terminate()
    return process.wait()


def end_with_parent() -> None:
    """Send this process SIGTERM when its parent ends or has ended, even if the parent was killed.

    Training then saves its state and ends. Only processes that `run_command` or torchrun started
    end with their parent; others may outlive theirs, such as a shell.
    """
    if not {_PARENT, _WORKER} & os.environ.keys():
        return
    parent = os.getppid()
    # The process that `_PARENT` names is not `parent` if a launcher runs between the two, or if it
    # was killed while this process started. The variable must not reach this process's children.
    recorded = int(os.environ.pop(_PARENT, parent))
    if sys.platform == "win32":  # where `getppid` never changes, and signal 0 would be Ctrl-C
        return

    def watch() -> None:
        while os.getppid() == parent and _exists(recorded):
            time.sleep(_WATCH)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _exists(process: int) -> bool:
    """Return whether there is a process of this id."""
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True
