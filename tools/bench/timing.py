"""Time functions that take turns, and keep page faults out of their times."""

from __future__ import annotations

import ctypes
import time
from statistics import median

from tools.bench.cases import Case, Measurement

FEWEST_ROUNDS = 5  # so that a slow case has a median


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


def time_case(case: Case, *, seconds: float, clock: str) -> dict[str, Measurement]:
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
    medians = {name: 1e3 * median(durations) for name, durations in times.items()}
    reference = next(iter(medians.values()))
    results = {}
    for name, milliseconds in medians.items():
        ratio = milliseconds / reference
        values = {"ms": milliseconds, "ratio": ratio, "rounds": rounds}
        results[name] = Measurement(values, f"{milliseconds:.4g} ms ({ratio:.2f})")
    return results
