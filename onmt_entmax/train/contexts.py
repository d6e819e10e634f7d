"""What holds in a process while it trains: signals, garbage collection, precision of products."""

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch

from onmt_entmax.systems import ending_signals


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude existing objects from garbage collection; they live as long as the run."""
    before = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not before:  # else this would also release what the caller has frozen
            gc.unfreeze()


@contextmanager
def tf32_products(enabled: bool) -> Iterator[None]:
    """Let matrix products on a GPU round their factors to TF32 inside the block, if enabled."""
    if not enabled:
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def collected_signals(alone: bool) -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a list, so that a run saves its state before it ends.

    Ignored signals stay ignored, such as SIGHUP after `nohup` or SIGINT in a script's background
    job. Signals often come twice: SIGHUP from the kernel and from the shell of a closed terminal,
    the others from `torchrun` or a job scheduler and from who asked that. Only a SIGINT after
    another signal has its usual effect, for a user who does not want to wait.

    Args:
        alone: this is the only process of the run; otherwise a second SIGINT has no effect either.

    Yields:
        The numbers of the signals received so far, which grows.
    """
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in ending_signals()}
    before = {
        number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN
    }

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if alone and signal.SIGINT in before:
            signal.signal(signal.SIGINT, before[signal.SIGINT])

    for number in before:
        signal.signal(number, handle)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
