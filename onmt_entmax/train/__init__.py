"""Training: the loop, the optimiser and its schedules, validation, and resuming."""

from onmt_entmax.train.config import Outcome, RunConfig, TrainingConfig, TrainingError
from onmt_entmax.train.optimiser import OptimizerConfig
from onmt_entmax.train.trainer import Evaluate, Trainer

__all__ = [
    "Evaluate",
    "OptimizerConfig",
    "Outcome",
    "RunConfig",
    "Trainer",
    "TrainingConfig",
    "TrainingError",
]
