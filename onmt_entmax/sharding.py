"""One file translated by several processes, as `torchrun` starts them.

Lines are cut into windows, which are dealt to the processes in turn. A window is translated as a
whole by whichever process it falls to, so answers do not depend on how many processes there are.
The first process writes all of them, in the order of the lines; the others send it theirs and go
on without waiting.
"""

from __future__ import annotations

import io
import itertools
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
from onmt_entmax.processes import ProcessError, Processes
from onmt_entmax.report.writers import Answer, Decoded
from onmt_entmax.search import Certificate, Hypothesis, SearchResult, Verification

# Lines of a window: enough to fill batches of similar length, little enough to stream. A search has
# few sentences left at the end of each: windows of 1250 lines cost the pilot 4 %, of 830 8 %.
_LARGEST, _SMALLEST = 4096, 1024
_ENOUGH = 16  # windows, where there are lines for as many, to keep several processes busy
# What a message may be made of, beside tensors, numbers, texts and their collections.
_PARTS: list[Any] = [Answer, Decoded, SearchResult, Hypothesis, Certificate, Verification]


@dataclass(frozen=True)
class Windows:
    """Which lines of a file one process translates.

    Attributes:
        size: lines of a window; the last one may have fewer.
        rank: number of the process, from 0.
        count: how many processes there are.
    """

    size: int = _LARGEST
    rank: int = 0
    count: int = 1

    @staticmethod
    def of(lines: int, processes: Processes) -> Windows:
        """The windows of a file of so many lines; where they are cut depends on these alone."""
        size = min(max(-(-lines // _ENOUGH), _SMALLEST), _LARGEST)
        return Windows(size, processes.rank, processes.count)

    def has(self, window: int) -> bool:
        """Whether window number `window`, from 0, is this process's."""
        return window % self.count == self.rank


class _LostError(Exception):
    """A process at the other end is there no more."""


@contextmanager
def _exchanging() -> Iterator[None]:
    """Tell the loss of another process from what may go wrong in this one."""
    try:
        yield
    except RuntimeError as error:
        raise _LostError(str(error).splitlines()[0]) from None


@contextmanager
def connected(processes: Processes) -> Iterator[None]:
    """Meet the other processes, and leave them in the end; alone, nothing happens.

    Raises:
        ProcessError: in the place of what the death of another process causes here. `torchrun`
            sends SIGTERM to those that are left, which has this effect in the first one.
    """
    if processes.count == 1:
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    if processes.writes:
        signal.signal(signal.SIGTERM, _end)
    processes.connect(torch.device("cpu"))
    try:
        yield
    except _LostError as error:
        if not processes.writes:
            # The first process has ended: for a reason that it says itself, where it could.
            raise SystemExit(2) from None
        raise ProcessError(
            f"another process of the run has died ({error}); no output is written, start again"
        ) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        processes.disconnect()


def _end(number: int, frame: FrameType | None) -> None:
    raise ProcessError("another process of the run has died, or it was asked to end; start again")


def send_answers(make: Callable[[], Iterable[Answer]]) -> int:
    """What the other processes do: translate their windows, and send them to the first.

    The text of an error of the user's is sent too, for the first process to raise.

    Args:
        make: gives the answers of this process, in order.

    Returns:
        The exit status.
    """
    sent: list[tuple[Any, Tensor]] = []
    try:
        # Consecutive windows go to different processes, so ids are consecutive within a window and
        # jump between windows.
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
    """What the first process does: the answers to all lines, its own and what others send.

    Args:
        own: answers of its own windows, in order.
        lines: of the file.
        windows: of the first process.

    Raises:
        UserError: what another process met.
    """
    received = [0] * windows.count
    for window in range(-(-lines // windows.size)):
        if windows.has(window):
            yield from itertools.islice(own, windows.size)
            continue
        sender = window % windows.count
        message = _receive(sender, received[sender])
        received[sender] += 2
        if isinstance(message, str):
            raise UserError(message)
        yield from message


def _send(message: list[Answer] | str, number: int) -> list[tuple[Any, Tensor]]:
    """Begin to send to the first process; what comes back is to be kept until it is sent."""
    content = packed(message)
    parts = (torch.tensor([len(content)]), content)
    with _exchanging():
        return [(dist.isend(part, 0, tag=number + at), part) for at, part in enumerate(parts)]


def _receive(sender: int, number: int) -> list[Answer] | str:
    """A message of another process."""
    size = torch.zeros(1, dtype=torch.int64)
    with _exchanging():
        dist.recv(size, sender, tag=number)
        content = torch.empty(int(size), dtype=torch.uint8)
        dist.recv(content, sender, tag=number + 1)
    return unpacked(content)


def packed(message: list[Answer] | str) -> Tensor:
    """A message as bytes, (length,) uint8."""
    written = io.BytesIO()
    torch.save(message, written)
    return torch.frombuffer(bytearray(written.getvalue()), dtype=torch.uint8)


def unpacked(content: Tensor) -> list[Answer] | str:
    """The message of some bytes; of classes that are not ours nothing is made."""
    with torch.serialization.safe_globals(_PARTS):
        message: list[Answer] | str = torch.load(
            io.BytesIO(content.numpy().tobytes()), weights_only=True
        )
    return message
