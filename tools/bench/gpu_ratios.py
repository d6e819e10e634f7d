"""Times of functions on a GPU as ratios to a reference, for the tables of `gpu.py`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from tools.bench.gpu_device import AS_WRITTEN, Device, Result

Calls = Mapping[str, Callable[[], None]]


def ratios(
    device: Device, conditions: Result, calls: Calls, peers: Calls, repeats: int
) -> Iterator[Result]:
    """Yield a row for each way to run functions: as written and, on a GPU, as a CUDA graph.

    A row has the milliseconds of the reference under its name, and the ratios of the others. The
    ratio of a function that could not be captured in a graph is nan, and the row is not `ok`.

    Args:
        device: where they run.
        conditions: cells that begin each row.
        calls: functions by name; the first is the reference.
        peers: functions of other packages, which only run as written: they read values back, so
            they cannot be captured.
        repeats: how often each function of `calls` is timed; peers are timed half as often, but at
            least once.
    """
    times: dict[str, dict[str, float]] = defaultdict(dict)  # milliseconds by way and name
    for name, call in calls.items():
        for way, run in device.ways(call):
            times[way][name] = device.median(run, repeats)
    for name, call in peers.items():
        times[AS_WRITTEN][name] = device.median(call, max(1, repeats // 2))
    reference, *others = calls
    for way, milliseconds in times.items():
        base = milliseconds.get(reference, math.nan)
        measured_peers = [name for name in peers if name in milliseconds]
        yield {
            **conditions,
            "run": way,
            reference: round(base, 3),
            **{
                name: round(milliseconds.get(name, math.nan) / base, 2)
                for name in (*others, *measured_peers)
            },
            "ok": all(name in milliseconds for name in calls),
        }
