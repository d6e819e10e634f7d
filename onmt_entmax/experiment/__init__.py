"""Where the rooms meet: a training run and a translation run, from configuration to files."""

from onmt_entmax.experiment.training import run_training, train
from onmt_entmax.experiment.translating import run_translation, translate

__all__ = ["run_training", "run_translation", "train", "translate"]
