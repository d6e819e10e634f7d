"""Messages between the processes of a translation: answers, or the text of an error.

Every process but the first sends messages to the first one, numbered from 0. Message k of a process
has two parts:

    tag 2k      its size in bytes, int64 of shape (1,)
    tag 2k + 1  its bytes, uint8, which `packed` writes

`receive` waits for the parts. `send` does not wait: it returns a `Sending`, which the sender keeps
until its `wait` has returned. Communication with a process that is gone raises `LostError`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from onmt_entmax.errors import first_line
from onmt_entmax.report.alignment import Alignment, Link
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

Message = list[Answer] | str
"""Answers, or the text of a `UserError`"""

_FIRST = 0  # rank of the process that receives all messages
# Classes that a message may contain, beside tensors, numbers, texts and collections.
_PARTS: list[Any] = [
    Alignment,
    Answer,
    Certificate,
    Decision,
    Decoded,
    Drawn,
    Hypothesis,
    Link,
    Penalties,
    Sample,
    SearchResult,
    SourceTokens,
    Verification,
]


class LostError(Exception):
    """The process at the other end is gone."""


@contextmanager
def _exchanging() -> Iterator[None]:
    """Raise `LostError` where communication with another process fails."""
    try:
        yield
    except RuntimeError as error:
        raise LostError(first_line(error)) from None


@dataclass(frozen=True)
class Sending:
    """A message on its way. Its parts must be kept until they are sent.

    Attributes:
        works: handles of PyTorch, one for each part.
        parts: size and content.
    """

    works: list[dist.Work | None]
    parts: tuple[Tensor, Tensor]

    def wait(self) -> None:
        """Wait until the message is sent.

        Raises:
            LostError: the first process is gone.
        """
        with _exchanging():
            for work in self.works:
                if work is not None:  # None: this process is not in the group
                    work.wait()


def send(message: Message, number: int) -> Sending:
    """Start to send message `number` of this process, from 0, to the first process.

    Raises:
        LostError: the first process is gone.
    """
    content = packed(message)
    size = torch.tensor([len(content)])
    with _exchanging():
        works = [
            dist.isend(part, _FIRST, tag=tag)
            for part, tag in zip((size, content), _tags(number), strict=True)
        ]
    return Sending(works, (size, content))


def receive(sender: int, number: int) -> Message:
    """Wait for a message of another process, and return it.

    Args:
        sender: rank of the process.
        number: number of the message, from 0.

    Raises:
        LostError: the process is gone.
    """
    size_tag, content_tag = _tags(number)
    size = torch.zeros(1, dtype=torch.int64)
    with _exchanging():
        dist.recv(size, sender, tag=size_tag)
        content = torch.empty(int(size), dtype=torch.uint8)
        dist.recv(content, sender, tag=content_tag)
    return unpacked(content)


def _tags(number: int) -> tuple[int, int]:
    """Return the tags of size and content of message `number` of a process."""
    return 2 * number, 2 * number + 1


def packed(message: Message) -> Tensor:
    """Return a message as bytes `(length,)` uint8."""
    written = io.BytesIO()
    torch.save(message, written)
    return torch.frombuffer(bytearray(written.getvalue()), dtype=torch.uint8)


def unpacked(content: Tensor) -> Message:
    """Return the message of bytes `(length,)` uint8; it may have only the classes in `_PARTS`."""
    with torch.serialization.safe_globals(_PARTS):
        message: Message = torch.load(io.BytesIO(content.numpy().tobytes()), weights_only=True)
        return message
