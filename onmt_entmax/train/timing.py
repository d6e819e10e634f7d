"""Measure how fast networks train and decode on this machine.

`prepare --minutes` plans a training by these speeds, see `cli/measured_networks.py`.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.config import (
    DataConfig,
    ModelConfig,
    TrainingConfig,
    ValidationConfig,
    VocabularyConfig,
)
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.timed_updates import round_robin, timed_updates
from onmt_entmax.train.trainer import Trainer

# Batches that a network's updates repeat: enough for the mean of their lengths to be typical.
_BATCHES = 50
_VALIDATED_PAIRS = 64  # sampled from the development set for each validation that is timed
# Outputs of an untrained model do not end. They are cut at this many times the mean length of a
# target: about the length of the longest output in a batch of a trained model.
_LONGEST_TO_MEAN = 1.5
# First updates, which are not timed: they allocate memory, and on a GPU record graphs of several
# shapes.
_WARM_UP = {"cpu": 1, "cuda": 30}
# The least time of decoding, in seconds. It is a difference of two measured times, which may come
# out as 0 or less.
_LEAST_DECODING = 1e-3


@dataclass(frozen=True)
class Timed:
    """A network to measure, with its training.

    Attributes:
        data: the data of the training; `batch_size` must be in sentences, since speeds are.
        model: the network.
        training: how it is trained.
    """

    data: DataConfig
    model: ModelConfig
    training: TrainingConfig

    def __post_init__(self) -> None:
        assert self.data.batch_type == "sents", "speeds are in sentences"


class ValidationSpeeds(NamedTuple):
    """How fast a network is validated, in pairs a second."""

    loss: float
    """Pairs whose loss is computed."""
    decoding: float
    """Pairs that are decoded, without their loss."""


class Stopwatch:
    """Measures how fast networks train and decode on some corpora, which are read once.

    Args:
        data: the corpora.
        vocabulary: files and sizes of their vocabularies.
        device: the device to measure on.

    Attributes:
        examples: pairs of the training data in an epoch.
        mean_target_length: mean length of the targets of the training data, in tokens.
    """

    def __init__(
        self, data: DataConfig, vocabulary: VocabularyConfig, device: torch.device
    ) -> None:
        self._corpora = TrainingData.read(data, vocabulary)
        self._device = device
        self._batches: dict[int, list[Batch]] = {}  # by batch size
        self.examples = self._corpora.epoch_size
        _, target_counts = self._corpora.counts
        self.mean_target_length = target_counts.total() / max(self.examples, 1)

    @cached_property
    def development_pairs(self) -> int:
        """Number of pairs of the development set, which are read once."""
        return len(self._corpora.development_set().sources)

    def training_speeds(self, networks: Sequence[Timed], seconds: float) -> list[float]:
        """Return on how many examples a second each network trains.

        Networks update in turns, so that other work on the machine slows all of them alike.

        Args:
            networks: at least one.
            seconds: about the time that measuring takes, after the first network's warm-up.

        Returns:
            The speeds of the first networks, at least of one. The list is shorter than `networks`
            if there was no time for the last ones.
        """
        first, *others = networks
        updates = [self._warm_updates(first)]
        # The time starts here, since the first update of all also imports modules.
        deadline = time.monotonic() + seconds
        for network in others:
            if time.monotonic() > deadline:
                break
            updates.append(self._warm_updates(network))
        times = round_robin(updates, deadline)
        timed = networks[: len(times)]
        return [
            of_network.updates * network.data.batch_size / of_network.seconds
            for of_network, network in zip(times, timed, strict=True)
        ]

    def _warm_updates(self, network: Timed) -> Iterator[float]:
        """Return the seconds of a network's updates, after those that are not timed."""
        trainer = self._trainer(network)
        updates = timed_updates(trainer, self._first_batches(trainer, network.data.batch_size))
        for _ in range(_WARM_UP[self._device.type]):
            next(updates)
        return updates

    def _first_batches(self, trainer: Trainer, size: int) -> list[Batch]:
        """Return the first batches of a trainer; batches of one size are read only once.

        On large data, an epoch takes long to begin.

        Args:
            trainer: reads them.
            size: sentences of its batches.
        """
        if size not in self._batches:
            with closing(iter(trainer.state.batches)) as stream:
                self._batches[size] = list(islice(stream, _BATCHES))
        return self._batches[size]

    def validation_speeds(self, network: Timed, validation: ValidationConfig) -> ValidationSpeeds:
        """Return how fast an untrained network is validated.

        A validation that decodes also computes the loss. So the time of decoding is the difference
        between a validation with it and one without.

        Args:
            network: the network to measure.
            validation: the beam and batch size.
        """
        model = self._model(network.model).eval()
        length = math.ceil(_LONGEST_TO_MEAN * self.mean_target_length) + 1  # and the end symbol
        decoding = replace(
            validation,
            valid_loss_size=_VALIDATED_PAIRS,
            valid_decode_size=_VALIDATED_PAIRS,
            max_length=length,
        )
        loss_seconds = self._validation_seconds(model, replace(decoding, selection="loss"))
        both_seconds = self._validation_seconds(model, decoding)
        decoding_seconds = max(both_seconds - loss_seconds, _LEAST_DECODING)
        pairs = min(self.development_pairs, _VALIDATED_PAIRS)
        return ValidationSpeeds(loss=pairs / loss_seconds, decoding=pairs / decoding_seconds)

    def _validation_seconds(self, model: SparseNMTModel, config: ValidationConfig) -> float:
        """Return how long a validation takes, for a model in evaluation mode."""
        evaluate = make_evaluate(self._corpora, config)
        with torch.no_grad():
            evaluate(model)  # the first time takes longer
            started = time.monotonic()
            evaluate(model)
        return time.monotonic() - started

    def _model(self, config: ModelConfig) -> SparseNMTModel:
        """Return an untrained model on the device."""
        torch.manual_seed(1)
        return build_model(config, self._corpora.vocabularies).to(self._device)

    def _trainer(self, network: Timed) -> Trainer:
        """Return a trainer that neither saves nor logs."""
        corpora = self._corpora.in_batches_of(network.data)
        model = self._model(network.model)
        nothing_saved = RunFolder(
            path=Path(), config=network.model, vocabularies=corpora.vocabularies, options={}
        )
        return Trainer(
            model=model,
            batches=TrainingBatches(corpora),
            config=network.training,
            evaluate=None,
            run=nothing_saved,
            log=None,
            processes=Processes(),
        )
