"""What holds in a process while it trains: garbage collection, and precision on a GPU."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
