"""Time functions against each other, alternating in one process.

Scripts of benchmarks call `run` with their cases. In a round each contender of a case runs once, so
that other load falls on all alike; a ratio is the median time of a contender divided by that of the
reference. The allocator matters, since on a CPU page faults can cost more than the arithmetic: with
`faultfree`, glibc keeps and reuses all memory. `--memory` measures peak memory instead.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.sparse.backends import cpu
from tools.bench.arguments import COUNT, POSITIVE
from tools.bench.cases import Case, Measurement
from tools.bench.memory import peak_memory
from tools.bench.timing import keep_freed_memory, time_case

IDLE = 0.5  # largest load average of a machine that does nothing else

_IMPLEMENTATION = "cpu" if cpu.module is not None else "PyTorch"


def run(
    description: str | None,
    cases: Callable[[argparse.Namespace], Iterable[Case]],
    declare: Callable[[argparse.ArgumentParser], object] | None = None,
) -> None:
    """Run a benchmark from the command line, and exit.

    Args:
        description: docstring of the benchmark.
        cases: returns its cases, from the options of the command line.
        declare: adds its own options to the parser; None: it has none.
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
    declare: Callable[[argparse.ArgumentParser], object] | None,
) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(description)
    parser.add_argument("--threads", type=COUNT, default=1, help="threads of PyTorch (default 1)")
    parser.add_argument(
        "--allocator",
        choices=("default", "faultfree"),
        default="default",
        help="faultfree: glibc keeps freed memory, so that times are without page faults",
    )
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
    if declare is not None:
        declare(parser)
    return parser.parse_args(arguments)


def _prepare_process(options: argparse.Namespace) -> None:
    """Set the allocator, the threads and the seed of random numbers."""
    if options.allocator == "faultfree":
        keep_freed_memory()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)


def compare(cases: Iterable[Case], options: argparse.Namespace) -> None:
    """Measure the cases; print a line for each, and write JSON lines if asked to."""
    _print_machine(options)
    with open(options.output or os.devnull, "a", encoding="utf-8") as output:
        for case in cases:
            conditions = " ".join(f"{key}={value}" for key, value in case.conditions.items())
            if options.only not in conditions:
                continue
            results = _measure(case, options)
            cells = [f"{name} {result.text}" for name, result in results.items()]
            print(f"{conditions:<44} | " + " | ".join(cells), flush=True)
            output.write(json.dumps(_record(case, results, options)) + "\n")
            output.flush()


def _measure(case: Case, options: argparse.Namespace) -> dict[str, Measurement]:
    """Return the peak memory or the time of each contender."""
    if options.memory:
        return peak_memory(case)
    return time_case(case, seconds=options.seconds, clock=options.clock)


def _record(
    case: Case, results: Mapping[str, Measurement], options: argparse.Namespace
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
        "results": {name: result.values for name, result in results.items()},
    }


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
