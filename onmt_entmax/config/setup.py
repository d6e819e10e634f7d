"""The configurations of one training run, which the options of `train` set."""

from dataclasses import dataclass
from typing import Any

from onmt_entmax.config.data import DataConfig, VocabularyConfig
from onmt_entmax.config.network import ModelConfig
from onmt_entmax.config.run import RunConfig
from onmt_entmax.config.training import TrainingConfig
from onmt_entmax.config.validation import ValidationConfig


@dataclass(frozen=True)
class TrainingSetup:
    """The configurations of a training run; `options.train.training_setup` reads them.

    Attributes:
        run: folder, start and device.
        data: corpora and batches.
        vocabulary: files and sizes of the vocabularies.
        model: the network.
        training: loss, limits and schedule.
        validation: measures on the development set.
        record: every option by name, saved with each checkpoint.
        notes: notes for the user on options that are ignored or read as something else.
        warnings: warnings for the user on options that others overrule.
    """

    run: RunConfig
    data: DataConfig
    vocabulary: VocabularyConfig
    model: ModelConfig
    training: TrainingConfig
    validation: ValidationConfig
    record: dict[str, Any]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
