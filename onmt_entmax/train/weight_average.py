"""An average of the weights, which validation and checkpoints use in place of the newest ones."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from onmt_entmax.config import TrainingConfig
from onmt_entmax.train.saved_state import SavedCycles


class WeightAverage:
    """No average: the newest weights themselves. `weight_average` returns one of the subclasses.

    The trainer calls `begin_update` before each update and `update` after it, and saves and
    validates inside `applied`. A checkpoint then has the average as the model's weights, and beside
    it the weights that `applied` yielded and what `state_dict` returned; `restore` takes both.

    Args:
        model: all its weights are averaged, frozen ones included.
    """

    def __init__(self, model: nn.Module) -> None:
        self._weights: list[Tensor] = [*model.parameters()]

    def begin_update(self, cycle: int) -> bool:
        """Note the number of cycles of the learning rate that ended before an update.

        Returns:
            Whether the update is the first one of another cycle.
        """
        return False

    def update(self, step: int, finite: Tensor) -> None:
        """Add the weights after update number `step`, counted from 1.

        Args:
            step: the number of the update.
            finite: 0-dim, on the weights' device: 0 if the update was left out, so that the average
                stays, else 1. A tensor, so that nothing waits for the device.
        """

    def _average(self) -> list[Tensor] | None:
        """Return the average; None for the newest weights."""
        return None

    @contextmanager
    def applied(self) -> Iterator[list[Tensor] | None]:
        """Replace the weights by the average inside the block.

        Yields:
            The weights, in the order of the model's parameters; None if there is no average, and
            nothing is replaced.
        """
        average = self._average()
        if average is None:
            yield None
            return
        raw = [weight.detach().clone() for weight in self._weights]
        self._set(average)
        try:
            yield raw
        finally:
            self._set(raw)

    def state_dict(self) -> SavedCycles | None:
        """Return what a checkpoint saves besides the weights and their average, if anything."""
        return None

    def restore(self, raw: Sequence[Tensor] | None, cycles: SavedCycles | None) -> None:
        """Restore a run whose model was saved inside `applied`.

        Args:
            raw: what `applied` yielded then. The model's weights are the average, and become these.
            cycles: what `state_dict` returned then.
        """
        if raw is not None:
            self._set(raw)

    def return_to(self, cycle: int) -> bool:
        """Forget the ends of cycles if a restored run is in an earlier cycle than it was.

        So it is if its limits have been raised: cycles have other ends then.

        Args:
            cycle: the number of cycles that end before the next update.

        Returns:
            Whether ends were forgotten.
        """
        return False

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        """Copy values into the weights, which keep their memory."""
        torch._foreach_copy_(self._weights, list(values))


class MovingAverage(WeightAverage):
    """The exponential moving average of the weights.

    After update s the average becomes (1 - d) average + d weights, with

        d = max(decay, 9 / (s + 10)) = max(decay, 1 - (s + 1) / (s + 10))

    so that early averages follow the weights closely, and the first weights count little
    (Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; OpenNMT-py
    2.3.0, `Trainer._update_average`).

    Args:
        model: see `WeightAverage`.
        decay: share of the newest weights, such as 1e-4.
        every: updates between two changes of the average.
    """

    def __init__(self, model: nn.Module, decay: float, every: int) -> None:
        super().__init__(model)
        self._decay = decay
        self._every = every
        self._moving: list[Tensor] | None = None

    @torch.no_grad()
    def update(self, step: int, finite: Tensor) -> None:
        """See `WeightAverage.update`."""
        if (step - 1) % self._every:
            return
        if self._moving is None:
            self._moving = [weight.clone() for weight in self._weights]
        else:
            share = max(self._decay, 1 - (step + 1) / (step + 10))  # of the newest weights
            for average, weight in zip(self._moving, self._weights, strict=True):
                average.lerp_(weight, share * finite)

    def _average(self) -> list[Tensor] | None:
        return self._moving

    def restore(self, raw: Sequence[Tensor] | None, cycles: SavedCycles | None) -> None:
        """See `WeightAverage.restore`."""
        if raw is not None:
            self._moving = [weight.detach().clone() for weight in self._weights]
        super().restore(raw, cycles)


class CycleAverage(WeightAverage):
    """The mean of the newest weights and of those at the end of each cycle of the learning rate.

    At the end of a cycle the newest weights are those of this cycle, so this is the mean over
    cycles (Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima and Better
    Generalization", algorithm 1). The algorithm's repair of batch normalisation is left out: these
    networks have none.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self._cycle = 0  # number of cycles that have ended
        self._ends = 0  # number of ends in the mean
        self._mean: list[Tensor] | None = None

    @torch.no_grad()
    def begin_update(self, cycle: int) -> bool:
        """Add the weights as they are to the mean, if a cycle has ended.

        If two have, because the machine stood still, these weights count twice.
        """
        ended = cycle - self._cycle
        if ended <= 0:
            return False
        self._cycle = cycle
        self._ends += ended
        if self._mean is None:
            self._mean = [weight.detach().clone() for weight in self._weights]
        else:
            torch._foreach_lerp_(self._mean, self._weights, ended / self._ends)
        return True

    @torch.no_grad()
    def _average(self) -> list[Tensor] | None:
        if self._mean is None:
            return None
        return list(torch._foreach_lerp(self._mean, self._weights, 1 / (self._ends + 1)))

    def state_dict(self) -> SavedCycles:
        """See `WeightAverage.state_dict`."""
        return {"cycle": self._cycle, "ends": self._ends, "mean": self._mean}

    def restore(self, raw: Sequence[Tensor] | None, cycles: SavedCycles | None) -> None:
        """See `WeightAverage.restore`."""
        if cycles is not None:
            self._cycle, self._ends = cycles["cycle"], cycles["ends"]
            if cycles["mean"] is not None:
                self._mean = [
                    mean.to(weight.device, copy=True)
                    for mean, weight in zip(cycles["mean"], self._weights, strict=True)
                ]
        super().restore(raw, cycles)

    def return_to(self, cycle: int) -> bool:
        """See `WeightAverage.return_to`."""
        if cycle >= self._cycle:
            return False
        self._cycle, self._ends, self._mean = cycle, 0, None
        return True


def weight_average(model: nn.Module, config: TrainingConfig) -> WeightAverage:
    """Return the average of weights that a run keeps.

    Args:
        model: the model in training.
        config: at most one of `average_decay` and `cosine_cycles` asks for an average.
    """
    if config.average_decay > 0:
        return MovingAverage(model, config.average_decay, config.average_every)
    if config.optimizer.cosine_cycles > 1:
        return CycleAverage(model)
    return WeightAverage(model)
