"""The optimiser, learning-rate schedules, weight averages and the warm-up of attention."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from onmt_entmax.config import OptimizerConfig
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.transformer import EntmaxMultiHeadedAttention, alpha_parameters
from onmt_entmax.opennmt import build_torch_optimizer, make_learning_rate_decay_fn


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Build OpenNMT-py's optimiser of the trained weights; learned alphas are a second group.

    Adam is in PyTorch's fused form, several times faster.
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
    """Return the learning rates of weights and of learned alphas, times a factor."""
    rate, alpha_rate = config.learning_rate, config.alpha_learning_rate
    return rate * factor, (rate if alpha_rate is None else alpha_rate) * factor


def learning_rate_schedule(
    config: OptimizerConfig, last: int | None
) -> Callable[[int, float], float]:
    """Return the factor on the learning rate as a function of the update and the time.

    `cosine` rises linearly over the updates of `warmup_steps`. It falls by the time, or by the
    updates, whichever is nearer to its end, where it is zero. `plateau` is constant; validation
    lowers the rate. The others are OpenNMT-py's.

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
        warmup = config.warmup_steps
        falling = math.inf if last is None else max(last - warmup, 1)

        def cosine(step: int, time: float) -> float:
            by_updates = math.pi * max(step - warmup, 0) / falling
            angle = max(by_updates, math.pi * min(time, 1.0))
            return min(step / warmup, 1.0) * 0.5 * (1 + math.cos(angle))

        return cosine
    by_updates = make_learning_rate_decay_fn(config)
    return lambda step, time: by_updates(step)


class MovingAverage:
    """Exponential moving average of the weights, evaluated and saved in their place.

    After update s the average becomes (1 - d) average + d weights with
    d = max(decay, 9 / (s + 10)), so that the first weights count little (Junczys-Dowmunt et al.
    2018, "Marian: Fast Neural Machine Translation in C++"; OpenNMT-py 2.3.0,
    `Trainer._update_average`).

    Args:
        model: all its weights are averaged, frozen ones included.
        decay: share of the newest weights, such as 1e-4; 0 keeps no average.
        every: updates between two changes of the average.
    """

    def __init__(self, model: nn.Module, decay: float, every: int) -> None:
        self._weights: list[Tensor] = [*model.parameters()]
        self._decay, self._every = decay, every
        self._average: list[Tensor] | None = None

    @torch.no_grad()
    def update(self, step: int, finite: Tensor) -> None:
        """Add the weights after update number `step`, counted from 1.

        Args:
            step: the number of the update.
            finite: on the weights' device; 0 says that the update was left out: the average stays.
        """
        if self._decay == 0 or (step - 1) % self._every:
            return
        if self._average is None:
            self._average = [weight.clone() for weight in self._weights]
        else:
            share = max(self._decay, 1 - (step + 1) / (step + 10))  # of the newest weights
            for average, weight in zip(self._average, self._weights, strict=True):
                average.lerp_(weight, share * finite)

    @contextmanager
    def applied(self) -> Iterator[list[Tensor] | None]:
        """Replace the weights by the average inside the block.

        Yields:
            The weights, in the order of the model's parameters; None if there is no average, and
            nothing is replaced.
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
        """Restore a run whose model was saved under `applied`, which yielded `raw`."""
        if raw is None:
            return
        if self._decay > 0:
            self._average = [weight.detach().clone() for weight in self._weights]
        self._set(raw)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        torch._foreach_copy_(self._weights, list(values))


class AttentionWarmup:
    """Raise alpha of the attention from 1 (softmax) to the model's own.

    A source position with zero weight gets no gradient, so attention that is sparse from the start
    learns slowly where to look. Alpha rises linearly over the first updates; below 1.1 the
    attention is softmax.

    Args:
        model: the alphas of its attention modules rise, but for learned ones.
        steps: updates until alpha is the model's own; 0 for no warm-up.
    """

    def __init__(self, model: nn.Module, steps: int) -> None:
        self._alphas = {
            module: module.alpha
            for module in model.modules()
            if isinstance(module, (EntmaxGlobalAttention, EntmaxMultiHeadedAttention))
            and module.alpha is not None
        }
        self._steps = steps

    @contextmanager
    def applied(self, step: int) -> Iterator[None]:
        """Set the alpha of the update after `step` updates inside the block.

        After the block alpha is the model's own again, for validation and checkpoints.
        """
        if step >= self._steps:
            yield
            return
        try:
            for module, alpha in self._alphas.items():
                raised = 1 + (alpha - 1) * step / self._steps
                # Below, entmax hardly differs from softmax, which is faster.
                module.alpha = raised if raised >= 1.1 else 1.0
            yield
        finally:
            for module, alpha in self._alphas.items():
                module.alpha = alpha
