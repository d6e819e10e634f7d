"""Time attention with entmax, forward and backward, against softmax attention of PyTorch.

    python -m tools.bench.attention --quick
    python -m tools.bench.attention --device cuda

A row is a shape, a cell a contender: its median milliseconds, and their ratio to those of
PyTorch's `scaled_dot_product_attention`, which is called softmax.

1.33, 1.5, 2        attention of this project with this alpha; on a GPU only 1.5
learned             with an alpha for each head, from 1.1 to 1.9, and its gradient
entmax15, bisect    the mappings of entmax 1.3, of scores that PyTorch multiplies
adasplash           AdaSplash; on a GPU, causal shapes in bfloat16 only

The packages of the last two lines are timed where they are installed. With one thread on a CPU the
clock is processor time, else wall time; `--clock` chooses. A pass on a GPU ends when the GPU has
finished, so its clock is wall time.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, write_text
from tools.bench.arguments import COUNT, POSITIVE, choose_clock
from tools.bench.attention_contenders import (
    ON_CPU,
    ON_GPU,
    SMALL,
    SOFTMAX,
    Contender,
    Shape,
    contenders,
)
from tools.bench.cases import Case
from tools.bench.timing import time_case

SIZE = 64  # of a head
WARM_UP = 3  # passes before the timing; the first ones compile kernels
MOST_QUICK_SECONDS = 0.5  # of a shape
LONGEST_FAILURE = 80  # characters that are kept of an error

# Shape, type of numbers, milliseconds and failures by contender; `--output` writes it as JSON.
Record = dict[str, Any]


def run_once(contender: Contender, tensors: Sequence[Tensor], gradient: Tensor) -> None:
    """Run forward and backward, until the device has finished.

    Args:
        contender: the contender whose attention runs.
        tensors: query, key and value, each `(sentences, heads, length, size)`.
        gradient: gradient with respect to the output, of the same shape.
    """
    output = contender.attention(*tensors)
    torch.autograd.grad(output, [*tensors, *contender.parameters], gradient)
    if gradient.is_cuda:
        torch.cuda.synchronize()


@dataclass(frozen=True)
class Timing:
    """Where and how attention is timed.

    Attributes:
        device: device on which it runs.
        quick: whether to time fewer or smaller shapes.
        seconds: shortest time for each shape.
        clock: "cpu" for processor time, or "wall".
    """

    device: torch.device
    quick: bool
    seconds: float
    clock: str


def measure(shape: Shape, dtype: torch.dtype, timing: Timing) -> Record:
    """Return the median milliseconds of contenders, and why others failed.

    Args:
        shape: shape of the attention.
        dtype: type of all tensors.
        timing: where and how.
    """
    device = timing.device
    torch.manual_seed(0)
    size = (shape.sentences, shape.heads, shape.length, SIZE)
    query, key, value, gradient = (torch.randn(size, device=device, dtype=dtype) for _ in range(4))
    tensors = [tensor.requires_grad_() for tensor in (query, key, value)]
    by_name = contenders(shape, device, dtype)
    passes = {
        name: partial(run_once, contender, tensors, gradient) for name, contender in by_name.items()
    }
    may_fail = {name for name, contender in by_name.items() if contender.may_fail}
    failures = warm_up(passes, may_fail)
    working = {name: run for name, run in passes.items() if name not in failures}
    measured = time_case(Case({}, working), seconds=timing.seconds, clock=timing.clock)
    return {
        "shape": str(shape),
        "dtype": str(dtype),
        "milliseconds": {name: result.values["ms"] for name, result in measured.items()},
        "failures": failures,
    }


def warm_up(passes: Mapping[str, Callable[[], None]], may_fail: Set[str]) -> dict[str, str]:
    """Run passes; return the errors of those that failed.

    Args:
        passes: passes by name.
        may_fail: names of passes whose errors are returned.

    Raises:
        Exception: another pass failed.
    """
    failures = {}
    for name, run in passes.items():
        try:
            for _ in range(WARM_UP):
                run()
        except Exception as error:
            if name not in may_fail:
                raise
            failures[name] = (str(error) or repr(error)).splitlines()[0][:LONGEST_FAILURE]
    return failures


def time_shapes(timing: Timing) -> Iterator[Record]:
    """Yield a record of each type of numbers and shape."""
    for dtype, shapes in _shapes_of(timing.device, timing.quick).items():
        for shape in shapes:
            yield measure(shape, dtype, timing)


def printed(records: Iterable[Record]) -> Iterator[Record]:
    """Print a line for each record as it comes, with headings; yield the records."""
    for dtype, records_of_type in groupby(records, key=itemgetter("dtype")):
        name_of_type = dtype.removeprefix("torch.")
        print(f"attention, {name_of_type}, head size {SIZE}: milliseconds (ratio to softmax)")
        for record in records_of_type:
            print(_line(record), flush=True)
            yield record


def _line(record: Record) -> str:
    """Return a line of the table."""
    times = record["milliseconds"]
    reference = times[SOFTMAX]
    cells = [f"{name} {ms:.3g} ({ms / reference:.2f})" for name, ms in times.items()]
    cells += [f"{name} failed" for name in record["failures"]]
    return f"{record['shape']:<26}| " + " | ".join(cells)


def _shapes_of(device: torch.device, quick: bool) -> dict[torch.dtype, tuple[Shape, ...]]:
    """Return the shapes for each type of numbers."""
    if device.type == "cpu":
        return {torch.float32: SMALL if quick else ON_CPU}
    # Fewer in float32, whose kernels take the longest to compile.
    return {torch.float32: ON_CPU[:2], torch.bfloat16: ON_CPU if quick else ON_GPU}


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default cpu")
    parser.add_argument("--threads", type=COUNT, default=1, help="of a CPU (default 1)")
    parser.add_argument(
        "--quick", action="store_true", help="fewer or smaller shapes, in less time"
    )
    parser.add_argument("--seconds", type=POSITIVE, default=5.0, help="seconds for each shape")
    parser.add_argument("--clock", choices=("cpu", "wall"), help="cpu: processor time")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seconds = min(options.seconds, MOST_QUICK_SECONDS)
    if options.device == "cuda":
        if options.clock == "cpu":
            raise UserError("--clock cpu: processor time is not that of a GPU; use wall")
        options.clock = "wall"
    choose_clock(options)
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    options = parse_arguments(arguments)
    device = torch.device(options.device)
    timing = Timing(device, options.quick, options.seconds, options.clock)
    torch.set_num_threads(options.threads)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    load = os.getloadavg()[0]
    print(f"torch {torch.__version__}, {name}, {options.threads} thread(s), load {load:.1f}")
    results = {
        "torch": torch.__version__,
        "device": name,
        "clock": options.clock,
        "load": load,
        "threads": options.threads,
        "attention": list(printed(time_shapes(timing))),
    }
    if options.output is not None:
        write_text(options.output, json_text(results))
    return 0


if __name__ == "__main__":
    run_script(main)
