"""Translate one file with several processes, started by `torchrun`.

The processes take windows of lines in turn. Each window is translated as a whole, so answers do not
depend on the number of processes. The first process writes all answers in the order of the lines;
the others send it theirs without waiting. `cli/translate.py` calls `connected`, and inside it the
first process calls `in_order`, and the others `send_answers`.

A process sends a message for each of its windows, in order: a list of answers, or, as the last one,
the text of a `UserError`, which the first process raises. Message k (from 0) of a process has two
parts:

    tag 2k      its size in bytes, int64 of shape (1,)
    tag 2k + 1  its bytes, uint8, which `packed` writes

Who dies is noticed by communication that fails (`_LostError`), or by `torchrun`, which sends the
others SIGTERM.
"""

from __future__ import annotations

import io
import itertools
import math
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from onmt_entmax.errors import UserError, first_line
from onmt_entmax.parallel.processes import ProcessError, Processes
from onmt_entmax.report.alignment import Alignment
from onmt_entmax.report.answers import Answer, Decoded, Drawn, SourceTokens
from onmt_entmax.search import (
    Certificate,
    Decision,
    Hypothesis,
    Penalties,
    Sample,
    SearchResult,
    Verification,
)

# Lines of a window: enough to fill batches of similar length, few enough to stream. A batch runs
# empty at the end of each window: windows of 1250 lines cost 4 % of the time, of 830 lines 8 %. So
# the smallest cost about 6 %.
_LARGEST_WINDOW = 4096
_SMALLEST_WINDOW = 1024
_WINDOWS = 16  # of a file of medium size, so that as many processes have work
# Classes that a message may contain, beside tensors, numbers, texts and collections.
_PARTS: list[Any] = [
    Alignment,
    Answer,
    Certificate,
    Decision,
    Decoded,
    Drawn,
    Hypothesis,
    Penalties,
    Sample,
    SearchResult,
    SourceTokens,
    Verification,
]


@dataclass(frozen=True)
class Windows:
    """Which lines of a file one process translates.

    Attributes:
        size: lines of a window; the last one may have fewer.
        rank: of the process, from 0.
        count: number of processes.
    """

    size: int = _LARGEST_WINDOW
    rank: int = 0
    count: int = 1

    @staticmethod
    def of(lines: int, processes: Processes) -> Windows:
        """Return this process's windows of a file with so many lines."""
        size = min(max(math.ceil(lines / _WINDOWS), _SMALLEST_WINDOW), _LARGEST_WINDOW)
        return Windows(size, processes.rank, processes.count)

    def has(self, window: int) -> bool:
        """Tell whether this process has window number `window`, from 0."""
        return window % self.count == self.rank


class _LostError(Exception):
    """The process at the other end is gone."""


@contextmanager
def _exchanging() -> Iterator[None]:
    """Raise `_LostError` where communication with another process fails."""
    try:
        yield
    except RuntimeError as error:
        raise _LostError(first_line(error)) from None


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
    """
    if processes.count == 1:
        yield
        return

    advice = "no output is written, start again"
    reporting = _error_at_sigterm() if processes.writes else nullcontext()
    try:
        with reporting, processes.connected(torch.device("cpu"), advice):
            yield
    except _LostError as error:
        if not processes.writes:
            # The first process has ended and reported the reason, if it could.
            raise SystemExit(2) from None
        raise ProcessError(f"another process of the run has died ({error}); {advice}") from None


def send_answers(make: Callable[[], Iterable[Answer]]) -> int:
    """Translate this process's windows and send the answers to the first process.

    Args:
        make: returns the answers of this process, in order.

    Returns:
        The exit status.
    """
    sending: list[_Sending] = []
    try:
        for answers in _by_window(make()):
            sending.append(_send(answers, len(sending)))
    except UserError as error:
        sending.append(_send(str(error), len(sending)))
    with _exchanging():
        for message in sending:
            message.wait()
    return 0


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
        own: answers of its own windows, in order.
        lines: number of lines of the file.
        windows: of the first process.

    Raises:
        UserError: if another process raised one.
    """
    received = [0] * windows.count  # messages from each process
    for window in range(math.ceil(lines / windows.size)):
        if windows.has(window):
            yield from itertools.islice(own, windows.size)
            continue
        sender = window % windows.count
        message = _receive(sender, received[sender])
        received[sender] += 1
        if isinstance(message, str):
            raise UserError(message)
        yield from message


@dataclass(frozen=True)
class _Sending:
    """A message on its way. Its parts must be kept until they are sent.

    Attributes:
        works: handles of PyTorch, one for each part.
        parts: size and content.
    """

    works: list[dist.Work | None]
    parts: tuple[Tensor, Tensor]

    def wait(self) -> None:
        """Wait until the message is sent."""
        for work in self.works:
            if work is not None:  # None: this process is not in the group
                work.wait()


def _send(message: list[Answer] | str, number: int) -> _Sending:
    """Start to send message `number` of this process, from 0, to the first process."""
    content = packed(message)
    size = torch.tensor([len(content)])
    with _exchanging():
        works = [dist.isend(size, 0, tag=2 * number), dist.isend(content, 0, tag=2 * number + 1)]
    return _Sending(works, (size, content))


def _receive(sender: int, number: int) -> list[Answer] | str:
    """Wait for message `number`, from 0, of a process."""
    size = torch.zeros(1, dtype=torch.int64)
    with _exchanging():
        dist.recv(size, sender, tag=2 * number)
        content = torch.empty(int(size), dtype=torch.uint8)
        dist.recv(content, sender, tag=2 * number + 1)
    return unpacked(content)


def packed(message: list[Answer] | str) -> Tensor:
    """Return a message as bytes `(length,)` uint8."""
    written = io.BytesIO()
    torch.save(message, written)
    return torch.frombuffer(bytearray(written.getvalue()), dtype=torch.uint8)


def unpacked(content: Tensor) -> list[Answer] | str:
    """Return the message of some bytes; no classes but `_PARTS` are instantiated."""
    with torch.serialization.safe_globals(_PARTS):
        return torch.load(io.BytesIO(content.numpy().tobytes()), weights_only=True)
