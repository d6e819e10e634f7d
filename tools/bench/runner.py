"""Time functions against each other, alternating in one process.

In a round each contender of a case runs once, so that other load falls on all alike; a ratio is the
median time of a contender divided by that of the reference. The allocator matters, since on a CPU
page faults can cost more than the arithmetic: with `faultfree`, glibc keeps and reuses all memory.
"""

import argparse
import ctypes
import gc
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.rules import SHARE, number, positive, whole
from onmt_entmax.sparse.backends import cpu

# Types of arguments.
COUNT = whole(1, 10**9)
ALPHA = number(1, 10**6)
POSITIVE = positive(10**9)
DROPOUT = SHARE

_IMPLEMENTATION = "cpu" if cpu.module is not None else "PyTorch"


@dataclass(frozen=True)
class Case:
    """Functions that do the same work, under one set of conditions.

    Attributes:
        conditions: what is fixed, for the record: sizes, alpha, logits.
        contenders: the functions by name; the first is the reference of all ratios.
    """

    conditions: dict[str, object]
    contenders: Mapping[str, Callable[[], object]]


def run(
    description: str | None,
    cases: Callable[[argparse.Namespace], Iterable[Case]],
    declare: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
) -> None:
    """Run a benchmark from the command line, and exit.

    Args:
        description: docstring of the benchmark.
        cases: returns its cases.
        declare: adds options of its own.
    """

    def main(arguments: Sequence[str]) -> int:
        options = _parse_arguments(arguments, description, declare)
        compare(cases(options), options)
        return 0

    run_script(main)


def _parse_arguments(
    given: Sequence[str],
    description: str | None,
    declare: Callable[[argparse.ArgumentParser], object],
) -> argparse.Namespace:
    """Read the command line; set threads and allocator."""
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
    arguments = parser.parse_args(given)
    if arguments.allocator == "faultfree":
        keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    return arguments


def keep_freed_memory() -> None:
    """Tell glibc to keep freed memory, and to map no large blocks."""
    trim_threshold, mmap_max = -1, -4
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return
    library.mallopt(mmap_max, 0)
    library.mallopt(trim_threshold, 2**31 - 1)


def compare(cases: Iterable[Case], arguments: argparse.Namespace) -> None:
    """Measure the cases; print a line for each, and write JSON lines if asked to."""
    _print_machine(arguments)
    with open(arguments.output or os.devnull, "a", encoding="utf-8") as output:
        for case in cases:
            described = " ".join(f"{key}={value}" for key, value in case.conditions.items())
            if arguments.only and arguments.only not in described:
                continue
            measure = peak_memory if arguments.memory else time_case
            results = measure(case, arguments)
            cells = [f"{name} {cell['text']}" for name, cell in results.items()]
            print(f"{described:<44} | " + " | ".join(cells), flush=True)
            record = {
                **case.conditions,
                "threads": arguments.threads,
                "allocator": arguments.allocator,
                "clock": arguments.clock,
                "load": os.getloadavg()[0],
                "torch": torch.__version__,
                "entmax": _IMPLEMENTATION,
                "results": {
                    name: {key: value for key, value in cell.items() if key != "text"}
                    for name, cell in results.items()
                },
            }
            output.write(json.dumps(record) + "\n")
            output.flush()


def time_case(case: Case, arguments: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Return the median milliseconds of each contender, and the ratio to the first."""
    clock = time.perf_counter if arguments.clock == "wall" else time.process_time
    for run in case.contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in case.contenders}
    end, rounds = time.perf_counter() + arguments.seconds, 0
    while rounds < 5 or time.perf_counter() < end:
        for name, run in case.contenders.items():
            begin = clock()
            run()
            times[name].append(clock() - begin)
        rounds += 1
    reference = 1e3 * median(next(iter(times.values())))
    results: dict[str, dict[str, object]] = {}
    for name, taken in times.items():
        milliseconds = 1e3 * median(taken)
        ratio = milliseconds / reference
        text = f"{milliseconds:.4g} ms ({ratio:.2f})"
        results[name] = {"ms": milliseconds, "ratio": ratio, "rounds": rounds, "text": text}
    return results


def peak_memory(case: Case, arguments: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Return the megabytes that each contender adds at its peak, in a process of its own.

    Pages of library code, which a new process reads on demand, are not counted.
    """
    if not os.path.exists("/proc/self/statm"):
        raise UserError("--memory: reads /proc, which only Linux has")
    results: dict[str, dict[str, object]] = {}
    reference = 0.0
    for name, run in case.contenders.items():
        gc.collect()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            resident, files = _resident()
            run()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            os.write(writer, str(peak - _resident()[1] - (resident - files)).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            megabytes = int(pipe.read()) / 2**20
        os.waitpid(child, 0)
        reference = reference or megabytes
        text = f"{megabytes:.0f} MB ({megabytes / reference:.2f})"
        results[name] = {"MB": megabytes, "ratio": megabytes / reference, "text": text}
    return results


def _resident() -> tuple[int, int]:
    """Return the resident bytes of this process, and how many of them map files."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        _, resident, files = (int(n) * resource.getpagesize() for n in statm.read().split()[:3])
    return resident, files


def logits(kind: str, rows: int, classes: int) -> torch.Tensor:
    """Return random scores `(rows, classes)`.

    Args:
        kind: "uniform" (std 0.1), "normal", "wide" (std 4), or "trained", like a trained model's:
            a few large scores by Zipf's law, and the others far below.
        rows: number of rows.
        classes: number of classes.
    """
    noise = torch.randn(rows, classes)
    if kind == "trained":
        leaders = torch.rand(rows, classes).argsort(1).add(1).log().neg()
        return 1.5 * leaders + noise
    return noise * {"uniform": 0.1, "normal": 1.0, "wide": 4.0}[kind]


def _print_machine(arguments: argparse.Namespace) -> None:
    load = os.getloadavg()[0]
    print(
        f"torch {torch.__version__}, {platform.machine()}, {arguments.threads} thread(s), "
        f"allocator {arguments.allocator}, clock {arguments.clock}, load {load:.2f}, "
        f"entmax {_IMPLEMENTATION}"
    )
    if load > 0.5:
        advice = "; consider --clock cpu" if arguments.clock == "wall" else ""
        print(
            f"warning: the machine is not idle (load {load:.2f}): trust ratios, not times{advice}",
            file=sys.stderr,
        )
