"""Measure how fast networks train and decode on this machine, to plan a training."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

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
from onmt_entmax.train.trainer import Trainer

_BATCHES = 50  # different ones of a network, which repeat
_DECODED = 64  # pairs of the development set that are timed
# Updates that are not timed: they allocate memory, and on a GPU record graphs of several shapes.
_FIRST = {"cpu": 1, "cuda": 30}


@dataclass(frozen=True)
class Timed:
    """A network to measure, with its batches and its training."""

    data: DataConfig
    model: ModelConfig
    training: TrainingConfig


class Stopwatch:
    """Measures on the corpora of one configuration, which are read once.

    Args:
        data: corpora.
        vocabulary: of them.
        device: to measure on.
    """

    def __init__(
        self, data: DataConfig, vocabulary: VocabularyConfig, device: torch.device
    ) -> None:
        self._corpora = TrainingData(data, vocabulary, None)
        self._device = device
        self.rows = self._corpora.epoch_size
        _, target = self._corpora.counts
        self.target = target.total() / max(self.rows, 1)  # mean number of tokens
        self.dev = 0  # pairs of the development set, once it was decoded

    def training_speeds(self, networks: Sequence[Timed], seconds: float) -> list[float]:
        """Return the examples a second of each network, measured for about a time.

        Updates of the networks alternate, so that other work on the machine slows all of them.
        Networks at the end of the list that have no turn in the time are left out, but not the
        first.
        """
        updates: list[Iterator[float]] = []
        batches: dict[int, list[Batch]] = {}  # by size; to begin an epoch of large data takes long
        for network in networks:
            trainer, size = self._trainer(network), network.data.batch_size
            if size not in batches:
                with closing(iter(trainer.batches)) as stream:
                    batches[size] = list(islice(stream, _BATCHES))
            stream_of_updates = trainer.timed_updates(batches[size])
            for _ in range(_FIRST[self._device.type]):
                next(stream_of_updates)
            if not updates:  # from here on, since the first update also imports modules
                deadline = time.monotonic() + seconds
            updates.append(stream_of_updates)
            if time.monotonic() > deadline:
                break
        sums = round_robin(updates, deadline)
        sizes = [network.data.batch_size for network in networks]
        return [  # fewer than networks, if some had no turn
            count * size / taken for (count, taken), size in zip(sums, sizes, strict=False)
        ]

    def validation_speeds(
        self, network: Timed, validation: ValidationConfig
    ) -> tuple[float, float]:
        """Return the pairs a second whose loss is computed, and that are decoded.

        An untrained model does not end its outputs, which are cut here where they should end.
        """
        model = self._model(network.model).eval()
        length = math.ceil(1.5 * self.target) + 1
        decoding = replace(
            validation, valid_loss_size=_DECODED, valid_decode_size=_DECODED, max_length=length
        )
        taken = []
        for config in (replace(decoding, selection="loss"), decoding):
            evaluate = make_evaluate(self._corpora, config)
            with torch.no_grad():
                evaluate(model)  # the first time takes longer
                started = time.monotonic()
                evaluate(model)
            taken.append(time.monotonic() - started)
        self.dev = len(self._corpora.validation().sources)
        pairs = min(self.dev, _DECODED)
        return pairs / taken[0], pairs / max(taken[1] - taken[0], 1e-3)

    def _model(self, config: ModelConfig) -> SparseNMTModel:
        """Return an untrained model on the device."""
        torch.manual_seed(1)
        return build_model(config, self._corpora.vocabularies).to(self._device)

    def _trainer(self, network: Timed) -> Trainer:
        """Return a trainer that neither saves nor logs."""
        corpora = copy.copy(self._corpora)
        corpora.config = network.data
        model = self._model(network.model)
        folder = RunFolder(Path(), network.model, corpora.vocabularies, {}, 1, {})
        batches = TrainingBatches(corpora)
        return Trainer(model, batches, network.training, None, folder, None, Processes())


def round_robin(
    updates: Sequence[Iterator[float]],
    deadline: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[tuple[int, float]]:
    """Return the number and the seconds of each network's updates, which take turns.

    Args:
        updates: yield the seconds of one update after another.
        deadline: the turns end, if the first network had one.
        clock: says when.
    """
    sums = [(0, 0.0)] * len(updates)
    while True:
        for number, stream in enumerate(updates):
            if clock() > deadline and sums[0][0]:
                return [(count, seconds) for count, seconds in sums if count]
            count, seconds = sums[number]
            sums[number] = count + 1, seconds + next(stream)
