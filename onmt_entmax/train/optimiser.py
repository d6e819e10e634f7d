"""The moving average of a model's weights, which is evaluated and saved in their place."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.opennmt import build_torch_optimizer, make_learning_rate_decay_fn
from onmt_entmax.sparse.solvers import SMALLEST_POWER_ALPHA

# How a step is taken: the optimiser's options and the schedules of the learning rate.


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


class MovingAverage:
    """An exponential moving average of weights, as Marian and OpenNMT-py have it.

    After update s it becomes (1 - d) average + d weights with d = max(decay, 9 / (s + 10)), so
    that the first weights are soon forgotten (Junczys-Dowmunt et al. 2018, Marian: Fast Neural
    Machine Translation in C++; OpenNMT-py 2.3.0, `Trainer._update_average`).

    Args:
        model: its weights are averaged, those of embeddings and of frozen parts too.
        decay: share of the newest weights, such as 1e-4; 0 keeps no average.
        every: updates from one share to the next.
    """

    def __init__(self, model: nn.Module, decay: float, every: int) -> None:
        self._weights = list(model.parameters())
        self._decay, self._every = decay, every
        self._average: list[Tensor] | None = None

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after update number `step`, counted from 1."""
        if self._decay == 0 or (step - 1) % self._every:
            return
        if self._average is None:
            self._average = [weight.clone() for weight in self._weights]
        else:
            share = max(self._decay, 1 - (step + 1) / (step + 10))
            for average, weight in zip(self._average, self._weights, strict=True):
                average.lerp_(weight, share)

    @contextmanager
    def applied(self) -> Iterator[list[Tensor] | None]:
        """Put the average in the place of the weights for a while.

        Gives the weights themselves, in the order of the model's parameters; None where there is
        no average, and the weights stay where they are.
        """
        if self._average is None:
            yield None
            return
        raw = [weight.detach().clone() for weight in self._weights]
        self._set(self._average)
        try:
            yield raw
        finally:
            self._set(raw)

    def restore(self, raw: Sequence[Tensor] | None) -> None:
        """Continue a run whose model was saved under `applied`, which gave `raw`."""
        if raw is None:
            return
        if self._decay > 0:
            self._average = [weight.detach().clone() for weight in self._weights]
        self._set(raw)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        for weight, value in zip(self._weights, values, strict=True):
            weight.copy_(value)


# Attention that begins as softmax and becomes sparse while a model trains.


class AttentionWarmup:
    """Raises alpha of the global attention from 1 (softmax) to the model's own.

    A source position of zero weight has no gradient: attention that is sparse from the start
    learns late where to look. Alpha rises linearly over the first updates, as softmax below 1.1.

    Args:
        model: what is in it of `EntmaxGlobalAttention` is warmed up.
        steps: updates until alpha is the model's own; 0 for none.
    """

    def __init__(self, model: nn.Module, steps: int) -> None:
        self._alphas = {
            module: module.alpha
            for module in model.modules()
            if isinstance(module, EntmaxGlobalAttention)
        }
        self._steps = steps

    @contextmanager
    def applied(self, step: int) -> Iterator[None]:
        """Train the update after `step` updates in the block; after it alpha is the model's own,
        which is what is validated and saved."""
        if step >= self._steps:
            yield
            return
        try:
            for module, alpha in self._alphas.items():
                raised = 1 + (alpha - 1) * step / self._steps
                # Below it entmax hardly differs from softmax, which is faster.
                module.alpha = raised if raised >= SMALLEST_POWER_ALPHA else 1.0
            yield
        finally:
            for module, alpha in self._alphas.items():
                module.alpha = alpha
