"""The parts of the benchmark of `gpu.py`: which function measures each, and which one prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from tools.bench.attention import table as time_attention
from tools.bench.gpu_decoding import time_decoding
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_encoder import time_encoder
from tools.bench.gpu_loss_checks import check_loss
from tools.bench.gpu_printing import print_checks, print_steps, print_table
from tools.bench.gpu_sizes import CAPTURED, SIZES, SMALL, UPDATED
from tools.bench.gpu_steps import time_steps
from tools.bench.gpu_tables import time_losses, time_mappings
from tools.bench.gpu_update_checks import check_graphs, check_updates

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
        rows: name of its rows among the results; parts may share it.
        measure: yields its rows, when it is called. A row with a false `ok` has failed.
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
    return {
        **_checks(device, quick),
        **_steps(device, quick),
        "losses": _table("losses", LOSSES, partial(time_losses, device, quick)),
        "mappings": _table("mappings", MAPPINGS, partial(time_mappings, device, quick)),
        "attention": Part("attention", partial(_time_attention, device, quick), _print_nothing),
        "encoder": _table("encoder", ENCODER, partial(time_encoder, device, quick)),
        "decoding": _table("decoding", DECODING, partial(time_decoding, device, quick)),
    }


def _checks(device: Device, quick: bool) -> dict[str, Part]:
    """Return the parts that compare results with those of the CPU."""
    updated = UPDATED if device.is_gpu else SMALL
    captured = CAPTURED if device.is_gpu else SMALL
    measures: dict[str, Callable[[], Iterator[Result]]] = {
        "loss": partial(check_loss, device, quick),
        "updates": lambda: chain.from_iterable(check_updates(device, size) for size in updated),
        "graphs": lambda: (check_graphs(device, size, BATCHES_OF_GRAPHS) for size in captured),
    }
    return {
        f"checks-{name}": Part(f"{name} checks", measure, partial(print_checks, name))
        for name, measure in measures.items()
    }


def _steps(device: Device, quick: bool) -> dict[str, Part]:
    """Return a part for each size of models, which times training steps."""
    sizes = SIZES if device.is_gpu else SMALL
    return {
        f"steps-{number}": Part(
            "steps", partial(time_steps, device, size, quick), partial(print_steps, size)
        )
        for number, size in enumerate(sizes, 1)
    }


def _table(name: str, title: str, measure: Callable[[], Iterator[Result]]) -> Part:
    """Return a part that is printed as a table."""
    return Part(name, measure, partial(print_table, title))


def _time_attention(device: Device, quick: bool) -> Iterator[Result]:
    """Time attention; it prints its table itself, row by row."""
    return time_attention(device.device, quick, seconds=0.5 if quick else 2.0, clock="wall")


def _print_nothing(rows: Sequence[Result]) -> None:
    """Print nothing: the part has printed its rows itself."""
