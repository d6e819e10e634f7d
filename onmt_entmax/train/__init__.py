"""Training: the loop, the optimiser and its schedules, and signals."""

from onmt_entmax.train.config import Outcome, TrainingConfig, TrainingError
from onmt_entmax.train.optimiser import OptimizerConfig
from onmt_entmax.train.trainer import Evaluate, Trainer

__all__ = [
    "Evaluate",
    "OptimizerConfig",
    "Outcome",
    "Trainer",
    "TrainingConfig",
    "TrainingError",
]
