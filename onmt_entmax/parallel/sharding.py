"""Translate one file with several processes, started by `torchrun`.

The processes take windows of lines in turn. Each window is translated as a whole, so answers do not
depend on the number of processes. The first process writes all answers in the order of the lines;
the others send it theirs without waiting.
"""

from __future__ import annotations

import io
import itertools
import math
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from onmt_entmax.errors import UserError
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
# empty at the end of each window: 1250 lines cost 4 % of the time, 830 lines 8 %.
_LARGEST = 4096
_SMALLEST = 1024
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

    size: int = _LARGEST
    rank: int = 0
    count: int = 1

    @staticmethod
    def of(lines: int, processes: Processes) -> Windows:
        """Return this process's windows of a file with so many lines."""
        size = min(max(math.ceil(lines / _WINDOWS), _SMALLEST), _LARGEST)
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
        raise _LostError(str(error).splitlines()[0]) from None


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

    def end(number: int, frame: FrameType | None) -> None:
        raise ProcessError(
            "another process of the run has died, or it was asked to end; start again"
        )

    before = signal.getsignal(signal.SIGTERM)
    if processes.writes:
        signal.signal(signal.SIGTERM, end)
    advice = "no output is written, start again"
    try:
        with processes.connected(torch.device("cpu"), advice):
            yield
    except _LostError as error:
        if not processes.writes:
            # The first process has ended and reported the reason, if it could.
            raise SystemExit(2) from None
        raise ProcessError(f"another process of the run has died ({error}); {advice}") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def send_answers(make: Callable[[], Iterable[Answer]]) -> int:
    """Translate this process's windows and send the answers to the first process.

    The text of a `UserError` is sent too, for the first process to raise.

    Args:
        make: returns the answers of this process, in order.

    Returns:
        The exit status.
    """
    sent: list[tuple[Any, Tensor]] = []
    try:
        # Ids are consecutive within a window; other processes have those in between.
        by_window = itertools.groupby(enumerate(make()), lambda pair: pair[1].id - pair[0])
        for _, group in by_window:
            sent += _send([answer for _, answer in group], len(sent))
    except UserError as error:
        sent += _send(str(error), len(sent))
    with _exchanging():
        for work, _ in sent:
            work.wait()
    return 0


def in_order(own: Iterator[Answer], lines: int, windows: Windows) -> Iterator[Answer]:
    """Yield the answers to all lines in the first process: its own and those received.

    Args:
        own: answers of its own windows, in order.
        lines: number of lines of the file.
        windows: of the first process.

    Raises:
        UserError: if another process raised one.
    """
    received = [0] * windows.count
    for window in range(math.ceil(lines / windows.size)):
        if windows.has(window):
            yield from itertools.islice(own, windows.size)
            continue
        sender = window % windows.count
        size = torch.zeros(1, dtype=torch.int64)
        with _exchanging():
            dist.recv(size, sender, tag=received[sender])
            content = torch.empty(int(size), dtype=torch.uint8)
            dist.recv(content, sender, tag=received[sender] + 1)
        received[sender] += 2
        message = unpacked(content)
        if isinstance(message, str):
            raise UserError(message)
        yield from message


def _send(message: list[Answer] | str, number: int) -> list[tuple[Any, Tensor]]:
    """Start sending to the first process; return what must be kept until it is sent."""
    content = packed(message)
    parts = (torch.tensor([len(content)]), content)
    with _exchanging():
        return [(dist.isend(part, 0, tag=number + at), part) for at, part in enumerate(parts)]


def packed(message: list[Answer] | str) -> Tensor:
    """Return a message as bytes `(length,)` uint8."""
    written = io.BytesIO()
    torch.save(message, written)
    return torch.frombuffer(bytearray(written.getvalue()), dtype=torch.uint8)


def unpacked(content: Tensor) -> list[Answer] | str:
    """Return the message of some bytes; no classes but `_PARTS` are instantiated."""
    with torch.serialization.safe_globals(_PARTS):
        return torch.load(io.BytesIO(content.numpy().tobytes()), weights_only=True)
