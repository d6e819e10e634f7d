"""The optimiser, and the schedules of its learning rates."""

import math
from collections.abc import Callable

import torch
from torch import nn

from onmt_entmax.config import OptimizerConfig
from onmt_entmax.nn.transformer import alpha_parameters
from onmt_entmax.opennmt import build_torch_optimizer, make_learning_rate_decay_fn


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Build OpenNMT-py's optimiser of the trained weights.

    Learned alphas, if there are any, are a second group: `learning_rates` has a rate for each. Adam
    is in PyTorch's fused form, which is several times faster.
    """
    optimizer: torch.optim.Optimizer = build_torch_optimizer(model, config)
    learned = {*alpha_parameters(model)}
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer.param_groups[0]["params"] = [weight for weight in trained if weight not in learned]
    alphas = [weight for weight in trained if weight in learned]
    if alphas:
        optimizer.add_param_group({"params": alphas})
    if isinstance(optimizer, torch.optim.Adam):
        for group in optimizer.param_groups:
            group["fused"] = True
    return optimizer


def learning_rates(config: OptimizerConfig, factor: float) -> tuple[float, float]:
    """Return the learning rates of weights and of learned alphas, times the schedule's factor."""
    rate, alpha_rate = config.learning_rate, config.alpha_learning_rate
    return rate * factor, (rate if alpha_rate is None else alpha_rate) * factor


def learning_rate_schedule(
    config: OptimizerConfig, last: int | None
) -> Callable[[int, float], float]:
    """Return the factor on the learning rate as a function of the update and the time.

    - `cosine` rises linearly over the updates of `warmup_steps`, and falls as half a cosine wave to
      zero at the end of the run: by the time, or by the updates, whichever is nearer to its end.
    - `plateau` is constant; validation lowers the rate.
    - The others are OpenNMT-py's.

    Args:
        config: `decay_method` and its options.
        last: the update at which a run ends; None without such a limit.

    Returns:
        A function of the update, from 1, and of the share of `max_seconds` that has passed; 0
        without such a limit.
    """
    if config.decay_method == "plateau":
        return lambda step, time: 1.0
    if config.decay_method == "cosine":
        return _cosine(config.warmup_steps, last)
    factor = make_learning_rate_decay_fn(config)
    return lambda step, time: factor(step)


def _cosine(warmup: int, last: int | None) -> Callable[[int, float], float]:
    """Return the schedule `cosine`, see `learning_rate_schedule`.

    Args:
        warmup: updates in which the rate rises.
        last: the update at which the run ends; None without such a limit.
    """
    falling = math.inf if last is None else max(last - warmup, 1)  # updates of the fall

    def factor(step: int, time: float) -> float:
        # Not `pi * share`, whose last bits differ: a seed should give the same weights in every
        # version.
        by_updates = math.pi * max(step - warmup, 0) / falling
        angle = max(by_updates, math.pi * min(time, 1.0))
        return min(step / warmup, 1.0) * 0.5 * (1 + math.cos(angle))

    return factor
