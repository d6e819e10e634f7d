"""Time functions against each other, alternating in one process.

Scripts of benchmarks call `run` with their cases. In a round each contender of a case runs once, so
that other load falls on all alike; a ratio is the median time of a contender divided by that of the
reference. The allocator matters, since on a CPU page faults can cost more than the arithmetic: with
`faultfree`, glibc keeps and reuses all memory. `memory.py` measures memory instead (`--memory`).
"""

import argparse
import ctypes
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import median

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.rules import number, positive, whole
from onmt_entmax.sparse.backends import cpu
from tools.bench.cases import Case, Measured
from tools.bench.memory import peak_memory

# Types of arguments.
COUNT = whole(1, 10**9)
ALPHA = number(1, 10**6)
POSITIVE = positive(10**9)
FEWEST_ROUNDS = 5
IDLE = 0.5  # largest load average of a machine that does nothing else

_IMPLEMENTATION = "cpu" if cpu.module is not None else "PyTorch"


def declare_nothing(parser: argparse.ArgumentParser) -> None:
    """Add no options."""


def run(
    description: str | None,
    cases: Callable[[argparse.Namespace], Iterable[Case]],
    declare: Callable[[argparse.ArgumentParser], object] = declare_nothing,
) -> None:
    """Run a benchmark from the command line, and exit.

    Args:
        description: docstring of the benchmark.
        cases: returns its cases, from the options of the command line.
        declare: adds options of its own.
    """

    def main(arguments: Sequence[str]) -> int:
        options = _parse_arguments(arguments, description, declare)
        _prepare_process(options)
        compare(cases(options), options)
        return 0

    run_script(main)


def _parse_arguments(
    arguments: Sequence[str],
    description: str | None,
    declare: Callable[[argparse.ArgumentParser], object],
) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(description)
    parser.add_argument("--threads", type=COUNT, default=1)
    parser.add_argument("--allocator", choices=("default", "faultfree"), default="default")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor time, for a machine that is not idle",
    )
    parser.add_argument("--seconds", type=POSITIVE, default=2.0, help="seconds for each case")
    parser.add_argument("--only", default="", help="run cases whose conditions contain this text")
    parser.add_argument("--memory", action="store_true", help="measure peak memory, not time")
    parser.add_argument("--output", default="", help="append JSON lines to this file")
    declare(parser)
    return parser.parse_args(arguments)


def _prepare_process(options: argparse.Namespace) -> None:
    """Set the allocator, the threads and the seed of random numbers."""
    if options.allocator == "faultfree":
        keep_freed_memory()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)


def keep_freed_memory() -> None:
    """Tell glibc to keep freed memory, and to map no large blocks; elsewhere do nothing."""
    # Parameters of mallopt, in malloc.h.
    trim_threshold = -1
    mmap_max = -4
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return
    library.mallopt(mmap_max, 0)
    library.mallopt(trim_threshold, 2**31 - 1)


def choose_clock(options: argparse.Namespace) -> None:
    """Set `--clock` if it was not given: processor time, which other load disturbs least.

    Processor time adds up that of threads, so with several it is wall time.
    """
    if options.clock is None:
        options.clock = "cpu" if options.threads == 1 else "wall"


def compare(cases: Iterable[Case], options: argparse.Namespace) -> None:
    """Measure the cases; print a line for each, and write JSON lines if asked to."""
    _print_machine(options)
    measure: Callable[[Case], dict[str, Measured]] = partial(
        time_case, seconds=options.seconds, clock=options.clock
    )
    if options.memory:
        measure = peak_memory
    with open(options.output or os.devnull, "a", encoding="utf-8") as output:
        for case in cases:
            conditions = " ".join(f"{key}={value}" for key, value in case.conditions.items())
            if options.only not in conditions:
                continue
            results = measure(case)
            cells = [f"{name} {measured.text}" for name, measured in results.items()]
            print(f"{conditions:<44} | " + " | ".join(cells), flush=True)
            output.write(json.dumps(_record(case, results, options)) + "\n")
            output.flush()


def _record(
    case: Case, results: Mapping[str, Measured], options: argparse.Namespace
) -> dict[str, object]:
    """Return a case with its results, for `--output`."""
    return {
        **case.conditions,
        "threads": options.threads,
        "allocator": options.allocator,
        "clock": options.clock,
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
        "entmax": _IMPLEMENTATION,
        "results": {name: measured.values for name, measured in results.items()},
    }


def time_case(case: Case, *, seconds: float, clock: str) -> dict[str, Measured]:
    """Return the median milliseconds of each contender, and the ratio to the first.

    Args:
        case: its contenders take turns; each runs once before the timing.
        seconds: how long to measure, at least.
        clock: "cpu" for processor time, else "wall".
    """
    now = time.perf_counter if clock == "wall" else time.process_time
    for contender in case.contenders.values():
        contender()
    times: dict[str, list[float]] = {name: [] for name in case.contenders}
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < FEWEST_ROUNDS or time.perf_counter() < end:
        for name, contender in case.contenders.items():
            begin = now()
            contender()
            times[name].append(now() - begin)
        rounds += 1
    medians = {name: 1e3 * median(of_contender) for name, of_contender in times.items()}
    reference = next(iter(medians.values()))
    results = {}
    for name, milliseconds in medians.items():
        ratio = milliseconds / reference
        values = {"ms": milliseconds, "ratio": ratio, "rounds": rounds}
        results[name] = Measured(values, f"{milliseconds:.4g} ms ({ratio:.2f})")
    return results


def _print_machine(options: argparse.Namespace) -> None:
    """Print the conditions, and a warning if the machine is not idle."""
    load = os.getloadavg()[0]
    print(
        f"torch {torch.__version__}, {platform.machine()}, {options.threads} thread(s), "
        f"allocator {options.allocator}, clock {options.clock}, load {load:.2f}, "
        f"entmax {_IMPLEMENTATION}"
    )
    if load > IDLE:
        advice = "; consider --clock cpu" if options.clock == "wall" else ""
        print(
            f"warning: the machine is not idle (load {load:.2f}): trust ratios, not times{advice}",
            file=sys.stderr,
        )
