"""The parts of a run whose state its checkpoints keep; `saved_state.py` has the saved form."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import cast

import torch

from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.train.clock import Clock
from onmt_entmax.train.moving_average import MovingAverage
from onmt_entmax.train.progress import Progress
from onmt_entmax.train.random_generators import RandomGenerators
from onmt_entmax.train.saved_state import SavedCounters, SavedPosition, SavedState
from onmt_entmax.train.selection import Selection


@dataclass
class Counters:
    """Counters of a run, besides those of `Clock` and `Selection`."""

    step: int = 0
    """Updates done."""
    decay: float = 1.0
    """Factor on the learning rate by `decay_method: plateau`."""
    previous_loss: float | None = None
    """Loss of the last planned validation."""
    validated: int = -1
    """Step of the last validation."""
    skipped: int = 0
    """Updates that were left out because they were not finite."""
    output_factor: float = 1.0
    """The factor on the output's scores that the last validation found, see `calibration`."""

    def begin_validation(self) -> None:
        """Note that the weights after this step are validated."""
        self.validated = self.step
        self.output_factor = 1.0

    @property
    def saved_factor(self) -> float:
        """The number by which a checkpoint of this step multiplies the output's scores."""
        return self.output_factor if self.validated == self.step else 1.0

    def state_dict(self) -> SavedCounters:
        """Return what a checkpoint saves."""
        return cast(SavedCounters, asdict(self))

    def load_state_dict(self, saved: SavedCounters) -> None:
        """Restore what `state_dict` returned; entries that are missing get their defaults."""
        values: Mapping[str, object] = saved
        for field in fields(self):
            setattr(self, field.name, values.get(field.name, field.default))


@dataclass(frozen=True)
class TrainingState:
    """The parts of a run whose state its checkpoints keep."""

    counters: Counters
    clock: Clock
    selection: Selection
    batches: TrainingBatches
    """Checkpoints keep its position alone."""
    optimizer: torch.optim.Optimizer
    average: MovingAverage
    generators: RandomGenerators

    @property
    def progress(self) -> Progress:
        """How much of the run is done."""
        return Progress(self.counters.step, self.batches.epochs, self.clock.seconds)

    def state_dict(self) -> SavedState:
        """Return what a checkpoint saves; every process of the run calls this."""
        return {
            "run": {
                **self.counters.state_dict(),
                **self.clock.state_dict(),
                **self.selection.state_dict(),
            },
            "position": cast(SavedPosition, asdict(self.batches.position)),
            # Not the groups: learning rates and the like are the configuration's.
            "optimizer": self.optimizer.state_dict()["state"],
            "random": self.generators.state_dict(),
        }

    def load_state_dict(self, saved: SavedState) -> None:
        """Restore what `state_dict` returned."""
        self.counters.load_state_dict(saved["run"])
        self.clock.load_state_dict(saved["run"])
        self.selection.load_state_dict(saved["run"])
        self.batches.position = Position(**saved["position"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        self.generators.load_state_dict(saved["random"])
