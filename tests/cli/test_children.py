"""`run_command` and `end_with_parent`: signals let the child save its state, and end both.

Parent and child are small programs: the parent runs the child as a command of the package.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from tests.cli.processes import PATIENCE, running, wait_for_line
from tests.commands import execute

# Runs a child, whose code is the first argument. After a signal, it gives the child 0.2 seconds to
# end by itself, instead of a second; then it signals the child in turn.
PARENT = """
import sys
from onmt_entmax.cli import children, ending
children._PATIENCE = 0.2
ending.CONSOLE = (sys.executable, "-c", sys.argv[1])
sys.exit(ending.ending("parent", lambda: children.run_command("train") or 0))
"""
# Collects signals, as training does, until it has `count`; then it saves for 0.4 seconds, which is
# longer than the parent waits.
CHILD = """
import signal, sys, time
from onmt_entmax.cli.children import end_with_parent
received = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: received.append(number))
end_with_parent()
print("ready", flush=True)
while len(received) < {count}:
    time.sleep(0.02)
time.sleep(0.4)
print("saved", *received, flush=True)
sys.exit(128 + received[0])
"""


@contextmanager
def running_parent(signals: int = 1, begin: str = "") -> Iterator[subprocess.Popen[str]]:
    """Run a parent whose child is ready for signals.

    Args:
        signals: after how many the child saves and ends.
        begin: code that the parent runs first.
    """
    with running(sys.executable, "-c", begin + PARENT, CHILD.format(count=signals)) as process:
        wait_for_line(process, "ready")
        yield process


class Ended(NamedTuple):
    """A parent and a child that have ended.

    Attributes:
        status: exit status of the parent.
        received: the signals that the child collected before it had saved, in order.
        errors: the standard error of both.
    """

    status: int
    received: list[int]
    errors: str


def wait_for_end(process: subprocess.Popen[str]) -> Ended:
    """Wait until a parent and its child, which must have saved, have ended."""
    printed, errors = process.communicate(timeout=PATIENCE)  # both have the same streams
    word, *received = printed.split()
    assert word == "saved"
    return Ended(process.returncode, [int(number) for number in received], errors)


# --- a signal to the parent, or to both ---


@pytest.fixture(
    scope="module",
    params=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    ids=lambda number: number.name,
)
def sent(request: pytest.FixtureRequest) -> signal.Signals:
    """The signal that is sent."""
    number: signal.Signals = request.param
    return number


@pytest.fixture(scope="module")
def signalled_by_a_terminal(sent: signal.Signals) -> Ended:
    """A terminal signals parent and child; the parent signals the child once more."""
    with running_parent(signals=2) as process:
        os.killpg(process.pid, sent)
        return wait_for_end(process)


@pytest.fixture(scope="module")
def signalled_by_kill(sent: signal.Signals) -> Ended:
    """`kill` signals the parent alone."""
    with running_parent() as process:
        os.kill(process.pid, sent)
        return wait_for_end(process)


def test_a_terminal_signals_the_child_itself(
    sent: signal.Signals, signalled_by_a_terminal: Ended
) -> None:
    """The parent adds SIGTERM, not a second interrupt, after which training would not save."""
    assert signalled_by_a_terminal.received == [sent, signal.SIGTERM]


def test_the_parent_terminates_a_child_that_kill_did_not_signal(signalled_by_kill: Ended) -> None:
    assert signalled_by_kill.received == [signal.SIGTERM]


@pytest.fixture(params=["by a terminal", "by kill"])
def signalled(
    request: pytest.FixtureRequest, signalled_by_a_terminal: Ended, signalled_by_kill: Ended
) -> Ended:
    """Parent and child after a signal in either way."""
    return signalled_by_a_terminal if request.param == "by a terminal" else signalled_by_kill


def test_a_signalled_parent_has_the_status_of_the_signal(
    signalled: Ended, sent: signal.Signals
) -> None:
    assert signalled.status == 128 + sent


def test_a_signalled_parent_says_that_the_command_continues(signalled: Ended) -> None:
    assert "stopped; the same command continues" in signalled.errors
    assert "Traceback" not in signalled.errors


# --- a parent that ends before its child ---


def test_a_killed_parent_lets_the_child_save() -> None:
    with running_parent() as process:
        process.kill()
        assert wait_for_end(process).received == [signal.SIGTERM]


def test_a_parent_that_was_killed_while_the_child_started_lets_it_save() -> None:
    """The system has given the child another parent; the environment names the one that ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as parent:
        parent.wait()
    begin = f"import os; os.environ['ONMT_ENTMAX_PARENT'] = '{parent.pid}'\n"
    child = execute([sys.executable, "-c", begin + CHILD.format(count=1)])
    assert child.stdout.splitlines() == ["ready", f"saved {signal.SIGTERM:d}"]


LAUNCHER = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


def test_a_program_between_parent_and_child_does_not_end_the_child() -> None:
    """A launcher starts the child, whose environment names this process as its parent.

    The child goes on until it interrupts itself.
    """
    begin = f"""
import os, signal, threading
os.environ["ONMT_ENTMAX_PARENT"] = "{os.getpid()}"
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
"""
    launched = execute([sys.executable, "-c", LAUNCHER, begin + CHILD.format(count=1)])
    assert launched.stdout.splitlines() == ["ready", f"saved {signal.SIGINT:d}"]


# --- ignored signals, and a child that fails ---


def test_ignored_signals_stay_ignored() -> None:
    """`nohup` lets a command ignore SIGHUP. Of both signals here, SIGTERM alone ends the parent."""
    ignore = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    with running_parent(begin=ignore) as process:
        os.kill(process.pid, signal.SIGHUP)
        os.kill(process.pid, signal.SIGTERM)
        ended = wait_for_end(process)
    assert ended.status == 128 + signal.SIGTERM
    assert ended.received == [signal.SIGTERM]


def test_a_parent_ends_with_the_status_and_error_of_its_child() -> None:
    child = "import sys; print('why', file=sys.stderr); sys.exit(3)"
    done = execute([sys.executable, "-c", PARENT, child])
    assert (done.returncode, done.stderr) == (3, "why\n")
