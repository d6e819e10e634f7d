"""Training: the loop, the optimiser and its schedules, signals, and several processes."""

from onmt_entmax.training.config import Outcome, TrainingConfig, TrainingError
from onmt_entmax.training.loop import Evaluate, Trainer
from onmt_entmax.training.optimizer import OptimizerConfig
from onmt_entmax.training.processes import ProcessError, Processes

__all__ = [
    "Evaluate",
    "OptimizerConfig",
    "Outcome",
    "ProcessError",
    "Processes",
    "Trainer",
    "TrainingConfig",
    "TrainingError",
]
