"""Training steps of several contenders, which alternate on the same batches.

`recurrence.py` and `transformer.py` share these options and this timing.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.rules import SHARE, whole
from tools.bench.arguments import COUNT
from tools.bench.timing import keep_freed_memory
from tools.bench.trainers import Trainer

BUCKET = 2048  # pairs that are sorted by length together

Clock = Callable[[], float]  # seconds


@dataclass
class Steps:
    """Measurements of the steps of one contender.

    Attributes:
        seconds: seconds of each whole step.
        adam: seconds of clipping and Adam in each step.
        supports: nonzero probabilities per token in each step; empty for stock softmax.
    """

    seconds: list[float] = field(default_factory=list)
    adam: list[float] = field(default_factory=list)
    supports: list[float] = field(default_factory=list)


def time_steps(
    contenders: Mapping[str, Trainer], batches: Iterable[Batch], clock: Clock
) -> dict[str, Steps]:
    """Time a step of each contender on each batch; return the times by name."""
    names = list(contenders)
    steps = {name: Steps() for name in names}
    for number, batch in enumerate(batches):
        # Every other batch comes to the contenders in reverse, so that none is always first.
        for name in names if number % 2 else reversed(names):
            contender = contenders[name]
            step_time = contender.step(batch, clock)
            steps[name].seconds.append(step_time.whole)
            steps[name].adam.append(step_time.update)
            if contender.support is not None:
                steps[name].supports.append(contender.support)
    return steps


def add_step_arguments(parser: argparse.ArgumentParser, *, dropout: float, fewest: int) -> None:
    """Add the options of a benchmark of steps.

    Args:
        parser: parser of the command line.
        dropout: default of `--dropout`.
        fewest: the least number of `--steps`.
    """
    add = parser.add_argument
    add("--data", type=Path, help="folder of real text")
    add("--batch", type=COUNT, default=64, help="pairs of a batch (default 64)")
    steps = whole(fewest, 10**9)
    add("--steps", type=steps, default=20, help="timed steps of each contender (default 20)")
    add("--dropout", type=SHARE, default=dropout, help=f"default {dropout:g}")
    add("--threads", type=COUNT, default=1, help="default 1")
    add("--clock", choices=("cpu", "wall"), help="default: cpu if one thread")


def clock_of(options: argparse.Namespace) -> Clock:
    """Return the clock that `--clock` names."""
    return time.process_time if options.clock == "cpu" else time.perf_counter


def prepare_process(options: argparse.Namespace) -> None:
    """Set the number of threads, and keep freed memory, so that no step waits for fresh pages."""
    torch.set_num_threads(options.threads)
    keep_freed_memory()


def conditions_of(options: argparse.Namespace, substitute: str) -> dict[str, object]:
    """Return what the figures of all benchmarks of steps depend on.

    Args:
        options: options of the command line.
        substitute: what the text is without `--data`.
    """
    return {
        "batch": options.batch,
        "text": "real" if options.data else substitute,
        "threads": torch.get_num_threads(),
        "clock": options.clock,
        "load": round(os.getloadavg()[0], 2),
    }
