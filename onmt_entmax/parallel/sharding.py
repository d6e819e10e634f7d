"""Translate one file with several processes, started by `torchrun`.

The processes take windows of lines in turn (`windows.py`). Each window is translated as a whole, so
answers do not depend on the number of processes. The first process writes all answers in the order
of the lines. The others send it theirs without waiting, in a message for each window. If another
process fails with a `UserError`, it sends the error as its last message, and the first process
raises it:

    windows of the file    0        1        2        3        4
    process                first    second   third    first    second
    message of its process          0        0                 1

`cli/translate.py` calls `connected`, and inside it the first process calls `in_order`, and the
others `send_answers`. If a process dies, communication with it fails (`LostError`), or `torchrun`
sends SIGTERM to the others.
"""

from __future__ import annotations

import itertools
import math
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType

import torch

from onmt_entmax.errors import UserError
from onmt_entmax.parallel.messages import LostError, Sending, receive, send
from onmt_entmax.parallel.process_group import in_process_group
from onmt_entmax.parallel.processes import ProcessError, Processes
from onmt_entmax.parallel.windows import Windows
from onmt_entmax.report.answers import Answer


@contextmanager
def _error_at_sigterm() -> Iterator[None]:
    """Raise a ProcessError where SIGTERM would end the process without a word."""

    def fail(number: int, frame: FrameType | None) -> None:
        raise ProcessError(
            "another process of the run has died, or it was asked to end; start again"
        )

    before = signal.signal(signal.SIGTERM, fail)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def connected(processes: Processes) -> Iterator[None]:
    """Connect to the other processes, if there are any, and disconnect at the end.

    Only the first process reports a failure, as only it writes.

    Raises:
        ProcessError: in the first process, if another one dies: communication fails, or `torchrun`
            sends SIGTERM.
        SystemExit: in the others, of status 2, if the first one is gone.
    """
    if processes.count == 1:
        yield
        return

    advice = "no output is written, start again"
    reporting = _error_at_sigterm() if processes.writes else nullcontext()
    try:
        with reporting, in_process_group(processes, torch.device("cpu"), advice):
            yield
    except LostError as error:
        if not processes.writes:
            # The first process has ended and reported the reason, if it could.
            raise SystemExit(2) from None
        raise ProcessError(f"another process of the run has died ({error}); {advice}") from None


def send_answers(make: Callable[[], Iterable[Answer]]) -> None:
    """Translate this process's windows, and send the answers to the first process.

    If there is an error, it is sent, too: only the first process reports errors.

    Args:
        make: returns the answers of this process, in order.

    Raises:
        LostError: the first process is gone.
    """
    sent: list[Sending] = []
    try:
        for answers in _by_window(make()):
            sent.append(send(answers, len(sent)))
    except UserError as error:
        sent.append(send(str(error), len(sent)))
    for message in sent:
        message.wait()


def _by_window(answers: Iterable[Answer]) -> Iterator[list[Answer]]:
    """Yield the answers of each window together.

    Ids are consecutive within a window, and other processes have those in between. So the id minus
    the number of answers before it is the same within a window, and larger in the next one.
    """
    numbered = enumerate(answers)
    for _, window in itertools.groupby(numbered, key=lambda pair: pair[1].id - pair[0]):
        yield [answer for _, answer in window]


def in_order(own: Iterator[Answer], lines: int, windows: Windows) -> Iterator[Answer]:
    """Yield the answers to all lines in the first process: its own and those received.

    Args:
        own: answers to its own windows, in order.
        lines: number of lines of the file.
        windows: windows of the first process.

    Raises:
        UserError: if another process raised one.
        LostError: if another process is gone.
    """
    received = [0] * windows.count  # messages from each process
    for window in range(math.ceil(lines / windows.size)):
        if windows.has(window):
            yield from itertools.islice(own, windows.size)
            continue
        sender = windows.owner(window)
        message = receive(sender, received[sender])
        received[sender] += 1
        if isinstance(message, str):
            raise UserError(message)
        yield from message
