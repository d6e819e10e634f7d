"""Measure how fast networks train and decode on this machine, to plan a training.

`cli/measured_networks.py` calls it for `prepare --minutes`. Networks are compared, so their updates
take turns: other work on the machine slows all of them alike.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, islice
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
from onmt_entmax.model import SparseNMTModel, build_model, device_of
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Trainer

_BATCHES = 50  # different ones of a network, which repeat
_DECODED_PAIRS = 64  # of the development set
# Outputs of an untrained model do not end. They are cut where those of a trained one, of which the
# longest of a batch decides, would about end: at so many times the mean length of a target.
_LONGEST_TO_MEAN = 1.5
# Updates that are not timed: they allocate memory, and on a GPU record graphs of several shapes.
_WARM_UP = {"cpu": 1, "cuda": 30}
# Seconds that decoding takes at least, since it is a difference of two times, which may be 0.
_LEAST_DECODING = 1e-3


@dataclass(frozen=True)
class Timed:
    """A network to measure, with its training.

    Attributes:
        data: of the training; `batch_size` must be in sentences, which speeds are counted in.
        model: the network.
        training: how it is trained.
    """

    data: DataConfig
    model: ModelConfig
    training: TrainingConfig

    def __post_init__(self) -> None:
        assert self.data.batch_type == "sents", "speeds are in sentences"


class Stopwatch:
    """Measures how fast networks train and decode on some corpora, which are read once.

    Args:
        data: corpora.
        vocabulary: of them.
        device: to measure on.

    Attributes:
        examples: pairs of the training data in an epoch.
        mean_target_length: of the training data, in tokens.
    """

    def __init__(
        self, data: DataConfig, vocabulary: VocabularyConfig, device: torch.device
    ) -> None:
        self._corpora = TrainingData.read(data, vocabulary)
        self._device = device
        self.examples = self._corpora.epoch_size
        _, target_counts = self._corpora.counts
        self.mean_target_length = target_counts.total() / max(self.examples, 1)

    @cached_property
    def development_pairs(self) -> int:
        """Number of pairs of the development set, which are read once."""
        return len(self._corpora.development_set().sources)

    def training_speeds(self, networks: Sequence[Timed], seconds: float) -> list[float]:
        """Return the examples a second of each network.

        Args:
            networks: one at least.
            seconds: about the time that measuring takes, after the first network's warm-up.

        Returns:
            Speeds of the first networks, of one at least: the list is shorter than `networks` if
            the last ones had no turn in the time.
        """
        first, *others = networks
        batches: dict[int, list[Batch]] = {}  # by size; to begin an epoch of large data takes long
        updates = [self._warm_updates(first, batches)]
        # From here on, since the first update of all also imports modules.
        deadline = time.monotonic() + seconds
        for network in others:
            if time.monotonic() > deadline:
                break
            updates.append(self._warm_updates(network, batches))
        sums = round_robin(updates, deadline)
        timed = networks[: len(sums)]
        return [
            count * network.data.batch_size / time_of_updates
            for (count, time_of_updates), network in zip(sums, timed, strict=True)
        ]

    def _warm_updates(self, network: Timed, batches: dict[int, list[Batch]]) -> Iterator[float]:
        """Return a network's timed updates, after those that are not timed.

        Args:
            network: to train.
            batches: by size; receives those of the network's size if they are not there.
        """
        trainer = self._trainer(network)
        size = network.data.batch_size
        if size not in batches:
            with closing(iter(trainer.state.batches)) as stream:
                batches[size] = list(islice(stream, _BATCHES))
        updates = _timed_updates(trainer, batches[size])
        for _ in range(_WARM_UP[self._device.type]):
            next(updates)
        return updates

    def validation_speeds(
        self, network: Timed, validation: ValidationConfig
    ) -> tuple[float, float]:
        """Return the pairs a second whose loss is computed, and that are decoded.

        A validation that decodes computes the loss, too: decoding takes the difference of the
        times with and without it.

        Args:
            network: to measure.
            validation: its beam and batch size.
        """
        model = self._model(network.model).eval()
        length = math.ceil(_LONGEST_TO_MEAN * self.mean_target_length) + 1  # and the end symbol
        decoding = replace(
            validation,
            valid_loss_size=_DECODED_PAIRS,
            valid_decode_size=_DECODED_PAIRS,
            max_length=length,
        )
        seconds = []  # without and with decoding
        for config in (replace(decoding, selection="loss"), decoding):
            evaluate = make_evaluate(self._corpora, config)
            with torch.no_grad():
                evaluate(model)  # the first time takes longer
                started = time.monotonic()
                evaluate(model)
            seconds.append(time.monotonic() - started)
        loss_seconds, both_seconds = seconds
        pairs = min(self.development_pairs, _DECODED_PAIRS)
        return pairs / loss_seconds, pairs / max(both_seconds - loss_seconds, _LEAST_DECODING)

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


def _timed_updates(trainer: Trainer, batches: Sequence[Batch]) -> Iterator[float]:
    """Make updates on these batches, again and again, and yield the seconds of each."""
    trainer.model.train()
    device = device_of(trainer.model)
    stream = cycle(batches)
    while True:
        started = time.monotonic()
        trainer.training_step.take(stream, received=())
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        yield time.monotonic() - started


def round_robin(updates: Sequence[Iterator[float]], deadline: float) -> list[tuple[int, float]]:
    """Return the number and the seconds of each network's updates, which take turns.

    Args:
        updates: of one network at least; each yields the seconds of one update after another.
        deadline: when turns end, by `time.monotonic`. The first network has one turn in any case.

    Returns:
        Those of the first networks, without the ones that had no turn.
    """
    sums = [(0, 0.0)] * len(updates)
    while True:
        for number, stream in enumerate(updates):
            if time.monotonic() > deadline and sums[0][0]:
                return [(count, seconds) for count, seconds in sums if count]
            count, seconds = sums[number]
            sums[number] = count + 1, seconds + next(stream)
