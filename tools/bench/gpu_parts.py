"""The parts of `gpu.py`: the function that measures each, and the one that prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tools.bench.attention import Timing, time_shapes
from tools.bench.gpu_decoding import time_decoding
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_encoder import time_encoder
from tools.bench.gpu_graph_checks import check_graphs
from tools.bench.gpu_loss_checks import check_loss
from tools.bench.gpu_printing import print_attention, print_checks, print_steps, print_table
from tools.bench.gpu_sizes import CPU_SIZES, GRAPH_CHECK_SIZES, STEP_SIZES, UPDATE_CHECK_SIZES
from tools.bench.gpu_steps import time_steps
from tools.bench.gpu_tables import time_losses, time_mappings
from tools.bench.gpu_update_checks import check_updates

GRAPH_CHECK_BATCHES = 6  # of each size
ATTENTION_SECONDS = 2.0  # that each shape is timed
QUICK_ATTENTION_SECONDS = 0.5


Measure = Callable[[], Iterator[Result]]
"""Measures one thing after another, and yields a row of each; a row with a false `ok` failed."""


@dataclass(frozen=True)
class Part:
    """A part of the benchmark.

    Attributes:
        key: key of its rows in the JSON file; parts may share one.
        measure: yields its rows.
        show: prints its rows.
    """

    key: str
    measure: Measure
    show: Callable[[Sequence[Result]], None]


def parts_of(device: Device, quick: bool) -> dict[str, Part]:
    """Return all parts by name, in the order in which they run.

    Args:
        device: where they run.
        quick: whether to measure fewer cases, and less often.
    """
    return {**_checks(device, quick), **_steps(device, quick), **_tables(device, quick)}


def _checks(device: Device, quick: bool) -> dict[str, Part]:
    """Return the parts that compare results with those of the CPU."""
    update_sizes = UPDATE_CHECK_SIZES if device.is_gpu else CPU_SIZES
    graph_sizes = GRAPH_CHECK_SIZES if device.is_gpu else CPU_SIZES

    def updates() -> Iterator[Result]:
        for size in update_sizes:
            yield from check_updates(device, size)

    def graphs() -> Iterator[Result]:
        for size in graph_sizes:
            yield check_graphs(device, size, GRAPH_CHECK_BATCHES)

    return {
        "checks-loss": _check("loss", partial(check_loss, device, quick)),
        "checks-updates": _check("updates", updates),
        "checks-graphs": _check("graphs", graphs),
    }


def _check(name: str, measure: Measure) -> Part:
    """Return a part whose failed checks are printed."""
    return Part(f"{name} checks", measure, partial(print_checks, name))


def _steps(device: Device, quick: bool) -> dict[str, Part]:
    """Return a part for each size of models, which times training steps."""
    sizes = STEP_SIZES if device.is_gpu else CPU_SIZES
    return {
        f"steps-{number}": Part(
            "steps", partial(time_steps, device, size, quick), partial(print_steps, size)
        )
        for number, size in enumerate(sizes, 1)
    }


def _tables(device: Device, quick: bool) -> dict[str, Part]:
    """Return the parts that are printed as tables, by the keys of their rows."""
    seconds = QUICK_ATTENTION_SECONDS if quick else ATTENTION_SECONDS
    attention = Timing(device.device, quick, seconds, clock="wall")
    parts = [
        _table(
            "losses",
            "loss, forward and backward, over cross-entropy",
            partial(time_losses, device, quick),
        ),
        _table(
            "mappings",
            "mapping, forward and backward, over softmax",
            partial(time_mappings, device, quick),
        ),
        Part("attention", partial(time_shapes, attention), print_attention),
        _table(
            "encoder",
            "LSTM encoder, forward and backward, over torch.nn.LSTM on padded batches",
            partial(time_encoder, device, quick),
        ),
        _table(
            "decoding",
            "decoding, 2x512, beam 5; the CPU's outputs and certificates",
            partial(time_decoding, device, quick),
        ),
    ]
    return {part.key: part for part in parts}


def _table(key: str, title: str, measure: Measure) -> Part:
    """Return a part that is printed as a table with a title."""
    return Part(key, measure, partial(print_table, title))
