"""The training state of a checkpoint: what resuming needs besides the model's weights.

`resuming` checks it before it is restored. `TrainingState` makes and restores

    run          the counters of `Counters`, `Clock` and `Selection`, by name
    position     the fields of `Position`, in the stream of batches
    optimizer    of each trained weight, by its number, the optimiser's tensors
    random       `cpu` and `cuda`: the random state of each process, in the order of ranks

and `Checkpoints`, which saves the model, the weights that training goes on with:

    raw_weights  all weights, if those of the checkpoint are their moving average; else None
    raw_output   weight and bias of the output layer before they were calibrated, if they were; else
                 None
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.clock import Clock
from onmt_entmax.train.moving_average import MovingAverage
from onmt_entmax.train.progress import Progress
from onmt_entmax.train.selection import Selection


@dataclass
class Counters:
    """Counters of a run that are not those of `Clock` or `Selection`."""

    step: int = 0  # updates done
    decay: float = 1.0  # factor on the learning rate by decay_method: plateau
    previous_loss: float | None = None  # of the last planned validation
    validated: int = -1  # step of the last validation
    skipped: int = 0  # updates skipped because they were not finite
    output_factor: float = 1.0  # of the output's scores, by the last validation if it calibrates

    def validate(self) -> None:
        """Note that a validation begins, of the weights after this step."""
        self.validated = self.step
        self.output_factor = 1.0

    @property
    def saved_factor(self) -> float:
        """By which scores are multiplied in a checkpoint of this step; 1 without a validation."""
        return self.output_factor if self.validated == self.step else 1.0

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint saves."""
        return asdict(self)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; an older checkpoint may lack parts."""
        for field in fields(self):
            setattr(self, field.name, saved.get(field.name, field.default))


class RandomGenerators:
    """The random generators of all processes, which all call each method.

    Args:
        processes: of the run.
        device: of this process's model. On a CPU, the state of `cuda` is empty.
    """

    def __init__(self, processes: Processes, device: torch.device) -> None:
        self._processes = processes
        self._device = device

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return what a checkpoint saves."""
        on_gpu = torch.empty(0)
        if self._device.type == "cuda":
            on_gpu = torch.cuda.get_rng_state(self._device)
        return {
            "cpu": self._processes.gather(torch.random.get_rng_state()),
            "cuda": self._processes.gather(on_gpu),
        }

    def load_state_dict(self, saved: Mapping[str, Sequence[Tensor]]) -> None:
        """Restore what `state_dict` returned, if the run has as many processes as then.

        With another number nothing is restored, on purpose: the processes share the batches out in
        another way, and each keeps the random numbers of its own seed.
        """
        if len(saved["cpu"]) != self._processes.count:
            return
        rank = self._processes.rank
        torch.random.set_rng_state(saved["cpu"][rank])
        if len(saved["cuda"][rank]) and self._device.type == "cuda":
            torch.cuda.set_rng_state(saved["cuda"][rank], self._device)


@dataclass(frozen=True)
class TrainingState:
    """The parts of a run whose state its checkpoints keep."""

    counters: Counters
    clock: Clock
    selection: Selection
    batches: TrainingBatches  # of which the position is kept
    optimizer: torch.optim.Optimizer
    average: MovingAverage
    generators: RandomGenerators

    @property
    def progress(self) -> Progress:
        """How much of the run is done."""
        return Progress(self.counters.step, self.batches.epochs, self.clock.seconds)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint saves; every process of the run calls this."""
        counters, clock, selection = self.counters, self.clock, self.selection
        return {
            "run": counters.state_dict() | clock.state_dict() | selection.state_dict(),
            "position": asdict(self.batches.position),
            # Not the groups: learning rates and the like are the configuration's.
            "optimizer": self.optimizer.state_dict()["state"],
            "random": self.generators.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.counters.load_state_dict(saved["run"])
        self.clock.load_state_dict(saved["run"])
        self.selection.load_state_dict(saved["run"])
        self.batches.position = Position(**saved["position"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        self.generators.load_state_dict(saved["random"])
