"""Updates of several trainings that take turns, each of them timed."""

import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.model import device_of
from onmt_entmax.train.trainer import Trainer


def timed_updates(trainer: Trainer, batches: Sequence[Batch]) -> Iterator[float]:
    """Update on the batches in their order, again and again; yield the seconds of each update."""
    trainer.model.train()
    device = device_of(trainer.model)
    stream = cycle(batches)
    while True:
        started = time.monotonic()
        trainer.training_step.take(stream, received=())
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        yield time.monotonic() - started


class UpdateTimes(NamedTuple):
    """How many updates a network has made, and the seconds of all of them together."""

    updates: int
    seconds: float


def round_robin(updates: Sequence[Iterator[float]], deadline: float) -> list[UpdateTimes]:
    """Let networks update in turns, until a time; return the times of their updates.

    Args:
        updates: for each network, at least one, the seconds of its updates, which are made as they
            are taken.
        deadline: when turns end, by `time.monotonic`. The first network has one turn in any case.

    Returns:
        The times of the networks in their order. If the deadline ends the first round of turns, the
        networks that had none are left out: these are the last ones.
    """
    times = [UpdateTimes(0, 0.0)] * len(updates)
    while True:
        for number, stream in enumerate(updates):
            if time.monotonic() > deadline and times[0].updates:
                return [of_network for of_network in times if of_network.updates]
            before = times[number]
            times[number] = UpdateTimes(before.updates + 1, before.seconds + next(stream))
