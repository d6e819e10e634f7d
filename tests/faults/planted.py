"""Defects on purpose, which attacks must notice; a child plants the one that is named to it."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any


def _unchecked() -> None:
    """Read files without looking at their checksums."""
    from onmt_entmax.checksums import CheckedFolder
    from onmt_entmax.files import read_bytes

    CheckedFolder.read = (  # type: ignore[method-assign]
        lambda self, name, at_most: read_bytes(self.path / name, at_most)
    )


def _torn() -> None:
    """Copy files to their places rather than rename them."""
    rename = os.replace

    def copy(source: Any, target: Any, **folders: Any) -> None:
        if folders or os.path.isdir(source):
            rename(source, target, **folders)
            return
        with open(source, "rb") as read, open(target, "wb") as written:
            shutil.copyfileobj(read, written)
        os.unlink(source)

    os.replace = copy


def _forgetful() -> None:
    """Resume with the weights alone."""
    from onmt_entmax.train.trainer import Trainer

    Trainer.load_state_dict = lambda self, state: None  # type: ignore[method-assign]


def _deaf() -> None:
    """Ignore signals."""
    heard = signal.signal

    def ignore(number: int, handler: Any) -> Any:
        return heard(number, signal.SIG_IGN)

    signal.signal = ignore
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ignore(number, None)


def _command(work: Callable[[], int]) -> Callable[[], None]:
    """Return what replaces the command `score`."""

    def plant() -> None:
        from onmt_entmax.cli import score

        score.main = lambda arguments: work()  # type: ignore[assignment]

    return plant


PLANTED: Mapping[str, Callable[[], None]] = {
    "unchecked": _unchecked,
    "torn": _torn,
    "forgetful": _forgetful,
    "deaf": _deaf,
    "traceback": _command(lambda: {}["a bug"]),
    "hang": _command(lambda: time.sleep(1000) or 0),
    "crash": _command(lambda: os.abort()),
    "silent": _command(lambda: 0),
}
