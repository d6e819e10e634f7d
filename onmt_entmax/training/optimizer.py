"""How a step is taken: the optimiser's options and the schedules of the learning rate."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from onmt_entmax.opennmt import build_torch_optimizer, make_learning_rate_decay_fn


@dataclass(frozen=True)
class OptimizerConfig:
    """How a step is taken; the names are OpenNMT-py's options (its functions read them)."""

    optim: str = "sgd"
    learning_rate: float = 1.0
    learning_rate_decay: float = 0.5
    decay_method: str = "none"  # none, noam, noamwd, rsqrt (OpenNMT-py's), plateau, cosine (ours)
    start_decay_steps: int = 50000
    decay_steps: int = 10000
    warmup_steps: int = 4000
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adagrad_accumulator_init: float = 0.0
    max_grad_norm: float = 5.0
    rnn_size: int = 500  # the model size in the schedules noam and noamwd


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """OpenNMT-py's optimiser; Adam in torch's fused form, which is several times faster."""
    optimizer: torch.optim.Optimizer = build_torch_optimizer(model, config)
    if isinstance(optimizer, torch.optim.Adam):
        for group in optimizer.param_groups:
            group["fused"] = True
    return optimizer


def learning_rate_schedule(config: OptimizerConfig, last: int | None) -> Callable[[int], float]:
    """The factor on the learning rate for update number 1, 2, ...

    Args:
        config: `cosine` warms up linearly over `warmup_steps` and falls to zero at `last`;
            `plateau` is flat (validation lowers it); the rest are OpenNMT-py's.
        last: the last update, which `cosine` needs.
    """
    if config.decay_method == "plateau":
        return lambda step: 1.0
    if config.decay_method == "cosine":
        assert last is not None, "the configuration asks for train_steps with cosine"
        return functools.partial(_cosine, warmup=config.warmup_steps, last=last)
    decay: Callable[[int], float] = make_learning_rate_decay_fn(config)
    return decay


def _cosine(step: int, warmup: int, last: int) -> float:
    if step <= warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(last - warmup, 1)))
