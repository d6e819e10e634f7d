"""Prefetching: run an iterator in another process, some items ahead of its consumer."""

import atexit
import copyreg
import multiprocessing
import os
import pickle
import queue
import threading
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.systems import blocked_signals, ignore_signals, start_method

START_METHOD = start_method()  # "fork" or "spawn"


class PrefetchProcess(Iterator[Any]):
    """Iterate over the items of an iterator that runs in another process.

    The process ends with this one, even if this one is killed. It ignores signals to end, which
    this process handles.

    Args:
        make: called in the other process to make the iterator; picklable, for platforms without
            fork.
        depth: how many items may be prefetched.
    """

    def __init__(self, make: Callable[[], Iterator[Any]], depth: int) -> None:
        context: Any = multiprocessing.get_context(START_METHOD)
        self._inlet, outlet = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(make, outlet, depth), daemon=True)
        # Blocked until the process ignores them, so that none ends it while it starts.
        with blocked_signals():
            self._process.start()
        outlet.close()  # so that reading fails when the other process ends
        atexit.register(self.close)

    def __next__(self) -> Any:
        """Return the next item.

        Raises:
            UserError: raised by the iterator.
            UserError: the process has died.
        """
        try:
            item, error = pickle.loads(self._inlet.recv_bytes())
        except (EOFError, OSError):
            self._process.join()
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
    """Run in the other process: a thread reads, this one sends."""
    ignore_signals()
    torch.set_num_threads(1)
    # Ten times as fast as PyTorch's way.
    copyreg.pickle(Tensor, lambda tensor: (torch.from_numpy, (tensor.numpy(),)))
    waiting: queue.Queue[bytes | None] = queue.Queue(maxsize=depth)

    def read() -> None:
        try:
            for item in make():
                waiting.put(pickle.dumps((item, None)))
        except UserError as error:
            waiting.put(pickle.dumps((None, error)))
        except Exception:
            traceback.print_exc()  # a bug; the consumer sees that this process ends
        waiting.put(None)

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        wait([parent.sentinel])
        os._exit(1)

    try:
        for work in (end_with_parent, read):
            threading.Thread(target=work, daemon=True).start()
    except RuntimeError:  # the system has no more
        error = UserError("no thread can be started; end other programs, or set num_workers: 0")
        outlet.send_bytes(pickle.dumps((None, error)))
        return
    try:
        while (message := waiting.get()) is not None:
            outlet.send_bytes(message)
    except BrokenPipeError:
        pass
