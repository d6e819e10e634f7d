"""An iterator that runs in a process of its own, some items ahead of whoever takes them."""

from __future__ import annotations

import atexit
import copyreg
import io
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.errors import UserError

START_METHOD: str | None = None  # "fork" or "spawn"; None: what the platform's Python does
_UNHEARD = (signal.SIGINT, signal.SIGTERM)


class ReaderError(UserError):
    """A process that reads ahead has died."""


class AheadProcess(Iterator[Any]):
    """Gives the items of an iterator that runs in another process.

    The process ends with this one however that ends, by SIGKILL too. Signals of the keyboard and
    of a batch system are this process's business; the other one does not hear them.

    Args:
        make: makes the iterator, in the other process; picklable, for platforms without fork.
        ahead: how many items may wait.
    """

    def __init__(self, make: Callable[[], Iterator[Any]], ahead: int) -> None:
        context: Any = multiprocessing.get_context(START_METHOD)
        self._inlet, outlet = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(make, outlet, ahead), daemon=True)
        # Held back until the process ignores them, so that it cannot die of one while it starts.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _UNHEARD)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        outlet.close()  # so that reading ends where the other process does
        atexit.register(self.close)

    def __next__(self) -> Any:
        """The next item.

        Raises:
            UserError: what the iterator raised.
            ReaderError: the process has died.
        """
        try:
            item, error = pickle.loads(self._inlet.recv_bytes())
        except (EOFError, OSError):
            self._process.join()
            raise ReaderError(
                f"the process that reads the corpora has died (exit code "
                f"{self._process.exitcode}; -9 is often a lack of memory); num_workers: 0 does "
                f"without one"
            ) from None
        if error is not None:
            raise error
        return item

    def close(self) -> None:
        """End the process."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.join()
        self._inlet.close()


def _run(make: Callable[[], Iterator[Any]], outlet: Connection, ahead: int) -> None:
    """The other process: one thread reads, this one sends."""
    for number in _UNHEARD:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _UNHEARD)
    torch.set_num_threads(1)
    waiting: queue.Queue[bytes | None] = queue.Queue(maxsize=ahead)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threading.Thread(target=_read, args=(make, waiting), daemon=True).start()
    try:
        while (message := waiting.get()) is not None:
            outlet.send_bytes(message)
    except BrokenPipeError:
        pass


def _read(make: Callable[[], Iterator[Any]], waiting: queue.Queue[bytes | None]) -> None:
    try:
        for item in make():
            waiting.put(_pickled((item, None)))
    except UserError as error:
        waiting.put(_pickled((None, error)))
    except Exception:
        traceback.print_exc()  # our own mistake; the taker learns that this process ends
    waiting.put(None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _pickled(message: object) -> bytes:
    """For a process of our own alone; torch's way would keep a file open for each tensor."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table.copy()
    pickler.dispatch_table[Tensor] = _as_array
    pickler.dump(message)
    return buffer.getvalue()


def _as_array(tensor: Tensor) -> tuple[Callable[..., Tensor], tuple[Any]]:
    return torch.from_numpy, (tensor.numpy(),)
