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

BATCHES_OF_GRAPHS = 6  # of each size
# Titles of tables.
LOSSES = "loss, forward and backward, over cross-entropy"
MAPPINGS = "mapping, forward and backward, over softmax"
ENCODER = "LSTM encoder, forward and backward, over torch.nn.LSTM on padded batches"
DECODING = "decoding, 2x512, beam 5; the CPU's outputs and certificates"


@dataclass(frozen=True)
class Part:
    """A part of the benchmark.

    Attributes:
        rows: key of its rows in the JSON file; parts may share it.
        measure: yields its rows. A row with a false `ok` has failed.
        show: prints its rows.
    """

    rows: str
    measure: Callable[[], Iterator[Result]]
    show: Callable[[Sequence[Result]], None]


def parts_of(device: Device, quick: bool) -> dict[str, Part]:
    """Return all parts by name, in the order in which they run.

    Args:
        device: where they run.
        quick: whether to measure fewer cases, and less often.
    """
    attention = Timing(device.device, quick, seconds=0.5 if quick else 2.0, clock="wall")
    return {
        **_checks(device, quick),
        **_steps(device, quick),
        "losses": _table("losses", LOSSES, partial(time_losses, device, quick)),
        "mappings": _table("mappings", MAPPINGS, partial(time_mappings, device, quick)),
        "attention": Part("attention", partial(time_shapes, attention), print_attention),
        "encoder": _table("encoder", ENCODER, partial(time_encoder, device, quick)),
        "decoding": _table("decoding", DECODING, partial(time_decoding, device, quick)),
    }


def _checks(device: Device, quick: bool) -> dict[str, Part]:
    """Return the parts that compare results with those of the CPU."""
    update_sizes = UPDATE_CHECK_SIZES if device.is_gpu else CPU_SIZES
    graph_sizes = GRAPH_CHECK_SIZES if device.is_gpu else CPU_SIZES

    def updates() -> Iterator[Result]:
        for size in update_sizes:
            yield from check_updates(device, size)

    def graphs() -> Iterator[Result]:
        for size in graph_sizes:
            yield check_graphs(device, size, BATCHES_OF_GRAPHS)

    measures: dict[str, Callable[[], Iterator[Result]]] = {
        "loss": partial(check_loss, device, quick),
        "updates": updates,
        "graphs": graphs,
    }
    return {
        f"checks-{name}": Part(f"{name} checks", measure, partial(print_checks, name))
        for name, measure in measures.items()
    }


def _steps(device: Device, quick: bool) -> dict[str, Part]:
    """Return a part for each size of models, which times training steps."""
    sizes = STEP_SIZES if device.is_gpu else CPU_SIZES
    return {
        f"steps-{number}": Part(
            "steps", partial(time_steps, device, size, quick), partial(print_steps, size)
        )
        for number, size in enumerate(sizes, 1)
    }


def _table(name: str, title: str, measure: Callable[[], Iterator[Result]]) -> Part:
    """Return a part that is printed as a table."""
    return Part(name, measure, partial(print_table, title))
