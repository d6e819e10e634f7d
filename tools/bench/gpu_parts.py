"""The parts of the benchmark of `gpu.py`: what each measures, and how its rows are printed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from tools.bench.attention import table as time_attention
from tools.bench.gpu_checks import check_graphs, check_loss, check_updates
from tools.bench.gpu_decoding import time_decoding
from tools.bench.gpu_device import Device
from tools.bench.gpu_sizes import SIZES, SMALL, Size
from tools.bench.gpu_steps import Result, time_steps
from tools.bench.gpu_tables import time_encoder, time_losses, time_mappings

# Of a GPU. They are compared with float64 on the CPU, which takes long for larger models: the
# smallest LSTM and the smallest Transformer.
CHECKED_SIZES = (SIZES[0], SMALL[-1])
# The first size has the model of the second one, with fewer pairs.
CAPTURED_SIZES = SIZES[1:]
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


def parts_of(device: Device, options: argparse.Namespace) -> dict[str, Part]:
    """Return all parts by name, in the order in which they run."""
    quick = options.quick
    return {
        **_checks(device, quick),
        **_steps(device, options),
        "losses": _table("losses", LOSSES, partial(time_losses, device, quick)),
        "mappings": _table("mappings", MAPPINGS, partial(time_mappings, device, quick)),
        "attention": Part("attention", partial(_time_attention, device, quick), _print_nothing),
        "encoder": _table("encoder", ENCODER, partial(time_encoder, device, quick)),
        "decoding": _table("decoding", DECODING, partial(time_decoding, device, quick)),
    }


def _checks(device: Device, quick: bool) -> dict[str, Part]:
    """Return the parts that compare results with those of the CPU."""
    checked = CHECKED_SIZES if device.is_gpu else SMALL
    captured = CAPTURED_SIZES if device.is_gpu else SMALL
    measures: dict[str, Callable[[], Iterator[Result]]] = {
        "loss": partial(check_loss, device, quick),
        "updates": lambda: chain.from_iterable(check_updates(device, size) for size in checked),
        "graphs": lambda: (check_graphs(device, size, size.batches(6)) for size in captured),
    }
    return {
        f"checks-{name}": Part(f"{name} checks", measure, partial(_print_checks, name))
        for name, measure in measures.items()
    }


def _steps(device: Device, options: argparse.Namespace) -> dict[str, Part]:
    """Return a part for each size of models, which times training steps."""
    sizes = SIZES if device.is_gpu else SMALL
    return {
        f"steps-{number}": Part(
            "steps", partial(time_steps, device, size, options), partial(_print_steps, size)
        )
        for number, size in enumerate(sizes, 1)
    }


def _table(name: str, title: str, measure: Callable[[], Iterator[Result]]) -> Part:
    """Return a part that is printed as a table."""
    return Part(name, measure, partial(_print_table, title))


def _time_attention(device: Device, quick: bool) -> Iterator[Result]:
    """Time attention; it prints its table itself, row by row."""
    return time_attention(device.device, quick, seconds=0.5 if quick else 2.0, clock="wall")


# --- printing --------------------------------------------------------------------------------


def _print_checks(title: str, checks: Sequence[Result]) -> None:
    """Print how many checks failed, and each of these."""
    wrong = [check for check in checks if not check["ok"]]
    # The error of a check that ended early is a text.
    errors = [check["error"] for check in checks if isinstance(check["error"], float)]
    worst = max(errors, default=0.0)
    print(f"{title}: {len(checks)} checks, {len(wrong)} failed, largest error {worst:.1e}")
    for check in wrong:
        print("  FAILED", check)


def _print_steps(size: Size, rows: Sequence[Result]) -> None:
    """Print the steps of a size, with their ratios to stock softmax and to ours."""
    title = f"step {size.name}, {size.batch} pairs"
    print(f"\n{title:34} {'ms':>8} {'/ stock':>9} {'/ alpha 1':>9} {'no waits':>9}  support  GB")
    steps = [row for row in rows if "ms" in row]
    times = {row["contender"]: row["ms"] for row in steps}
    stock = times.get("stock softmax", math.nan)
    softmax = times.get("graph 1", math.nan)
    for row in steps:
        print(
            f"  {row['contender']:32} {row['ms']:8.2f} {row['ms'] / stock:9.3f}"
            f" {row['ms'] / softmax:9.3f} {row.get('unwaited_ms', '')!s:>9}"
            f"  {row.get('support', '')!s:>7}  {row.get('gb', '')}"
        )
    for row in steps:
        if "kernels" in row:
            _print_kernels(row)


def _print_kernels(row: Result) -> None:
    """Print the slowest kernels of a step; the file has 30."""
    print(
        f"  kernels of a plain step, shape {row['shape']}: {row['kernels']} in "
        f"{row['kernels_ms']} ms"
    )
    for top in row["top"][:3]:
        print(f"    {top['ms']:8.3f} ms {top['count']:5} {top['kernel'][:90]}")


def _print_table(title: str, rows: Sequence[Result]) -> None:
    """Print rows in columns, and below each the cases that differ."""
    if not rows:
        return
    print("\n" + title)
    names = [name for name in rows[0] if name not in ("cases", "ok")]
    widths = [max(len(name), *(len(str(row.get(name, ""))) for row in rows)) for name in names]
    columns = list(zip(names, widths, strict=True))
    print("  " + "  ".join(f"{name:>{width}}" for name, width in columns))
    for row in rows:
        print("  " + "  ".join(f"{row.get(name, '')!s:>{width}}" for name, width in columns))
        for case in row.get("cases", ())[:10]:
            print(f"    {case}")


def _print_nothing(rows: Sequence[Result]) -> None:
    """Print nothing: the part has printed its rows itself."""
