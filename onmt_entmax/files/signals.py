"""Turn signals that end a process into SystemExit, so that its temporary files are removed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from onmt_entmax.systems import ending_signals


@contextmanager
def ended_by_exception() -> Iterator[None]:
    """Raise SystemExit in the block on SIGTERM and SIGHUP, so that temporary files are removed.

    The exit status is 128 plus the number of the signal, as in a shell. A signal that has a handler
    keeps it; so does SIGINT, for which Python raises KeyboardInterrupt. After the first signal,
    others are ignored until the block has ended: terminals and job schedulers often send one twice,
    and the second would interrupt the removal.
    """
    without_handler: list[int] = []
    if threading.current_thread() is threading.main_thread():  # other threads cannot set them
        without_handler = [
            number
            for number in set(ending_signals()) - {signal.SIGINT}
            if signal.getsignal(number) is signal.SIG_DFL
        ]

    def end(number: int, frame: FrameType | None) -> None:
        for ignored in without_handler:
            signal.signal(ignored, signal.SIG_IGN)
        raise SystemExit(128 + number)

    try:  # a signal may come before all handlers are set
        for number in without_handler:
            signal.signal(number, end)
        yield
    finally:
        for number in without_handler:
            signal.signal(number, signal.SIG_DFL)
