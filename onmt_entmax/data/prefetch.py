"""Prefetching: run an iterator in another process, some items ahead of its consumer.

    this process                 the other process
                                 thread `_read`: takes items from the iterator, pickles each
                                     |  queue of at most `depth` messages
    __next__  <---- pipe ----    main thread: sends them
                                 thread `_end_with_parent`: ends the process if this one ends

A message is an item, or the UserError that the iterator raised. After the last message, the other
process ends and its end of the pipe is closed. Its exit code then tells this process whether it
read all items (0) or died.

Trainings read their batches in this way. The errors therefore speak of corpora and of the option
`num_workers`, although any iterator could be read.
"""

import atexit
import copyreg
import multiprocessing
import os
import pickle
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.systems import blocked_signals, ignore_signals, start_method

START_METHOD = start_method()  # "fork" or "spawn"
Item = TypeVar("Item")
Messages = queue.Queue[bytes | int]
"""Pickled messages in order, and in the end the exit code of the process"""


class PrefetchProcess(Iterator[Item], Generic[Item]):
    """Iterates over the items of an iterator that runs in another process.

    The other process ends when this one ends, even if this one is killed. It ignores signals that
    end processes: this process handles them.

    Args:
        make: called in the other process to make the iterator; picklable, for platforms without
            fork.
        depth: how many items may be prefetched.
    """

    def __init__(self, make: Callable[[], Iterator[Item]], depth: int) -> None:
        context: Any = multiprocessing.get_context(START_METHOD)
        self._inlet, outlet = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(make, outlet, depth), daemon=True)
        # Signals are blocked until the process ignores them, so that none ends it while it starts.
        with blocked_signals():
            self._process.start()
        outlet.close()  # so that reading fails when the other process ends
        atexit.register(self.close)

    def __next__(self) -> Item:
        """Return the next item.

        Raises:
            StopIteration: there are no more items.
            UserError: the iterator raised it, or the process has died.
        """
        item: Item
        error: UserError | None
        try:
            item, error = pickle.loads(self._inlet.recv_bytes())  # safe: our own process sent it
        except (EOFError, OSError):
            self._process.join()
            if self._process.exitcode == 0:
                raise StopIteration from None
            raise UserError(
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


def _run(make: Callable[[], Iterator[Any]], outlet: Connection, depth: int) -> None:
    """Run the other process: one thread reads from the iterator, this one sends what it read."""
    ignore_signals()
    torch.set_num_threads(1)
    # Pickle tensors as arrays: ten times as fast as PyTorch's way, by files of shared memory.
    copyreg.pickle(Tensor, lambda tensor: (torch.from_numpy, (tensor.numpy(),)))
    messages: Messages = queue.Queue(maxsize=depth)
    try:
        threading.Thread(target=_end_with_parent, daemon=True).start()
        threading.Thread(target=_read, args=(make, messages), daemon=True).start()
    except RuntimeError:  # the system has no more
        error = UserError("no thread can be started; end other programs, or set num_workers: 0")
        outlet.send_bytes(_message(error=error))
        return
    with suppress(BrokenPipeError):  # the consumer has closed the iterator
        while isinstance(message := messages.get(), bytes):
            outlet.send_bytes(message)
        sys.exit(message)


def _message(item: Any = None, error: UserError | None = None) -> bytes:
    """Return an item or an error as the consumer reads it."""
    return pickle.dumps((item, error))


def _read(make: Callable[[], Iterator[Any]], messages: Messages) -> None:
    """Put the items of an iterator into a queue, then the exit code: 1 after a bug, else 0."""
    exit_code = 0
    try:
        for item in make():
            messages.put(_message(item))
    except UserError as error:
        messages.put(_message(error=error))
    except Exception:
        traceback.print_exc()
        exit_code = 1
    messages.put(exit_code)


def _end_with_parent() -> None:
    """Wait for the end of the process that started this one, then end at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this process was started by multiprocessing"
    wait([parent.sentinel])
    os._exit(1)
