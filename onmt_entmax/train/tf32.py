"""TF32 products, which round the factors of float32 products on a GPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from onmt_entmax.config import TrainingConfig


def without_tf32_on_cpu(
    training: TrainingConfig, device: torch.device, tell: Callable[[str], None]
) -> TrainingConfig:
    """Return the configuration with float32 products instead of tf32 on a CPU, which has none.

    Args:
        training: the configuration.
        device: the device of the run.
        tell: receives a warning if the type changes.
    """
    if training.matmul_dtype != "tf32" or device.type == "cuda":
        return training
    tell("warning: matmul_dtype: tf32 is of GPUs; float32 on the CPU")
    return replace(training, matmul_dtype="float32")


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
