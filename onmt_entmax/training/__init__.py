"""Training: the loop, the optimiser and its schedules, and signals."""

from onmt_entmax.training.config import Outcome, TrainingConfig, TrainingError
from onmt_entmax.training.loop import Evaluate, Trainer
from onmt_entmax.training.optimizer import OptimizerConfig

__all__ = [
    "Evaluate",
    "OptimizerConfig",
    "Outcome",
    "Trainer",
    "TrainingConfig",
    "TrainingError",
]
