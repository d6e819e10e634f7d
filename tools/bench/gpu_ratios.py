"""Times of functions on a GPU as ratios to a reference, for the tables of `gpu.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from tools.bench.gpu_device import AS_WRITTEN, Device, Result

Calls = Mapping[str, Callable[[], None]]


def ratios(
    device: Device, conditions: Result, calls: Calls, peers: Calls, repeats: int
) -> Iterator[Result]:
    """Yield a row for each way to run functions: as written and, on a GPU, as a CUDA graph.

    Args:
        device: where they run.
        conditions: begin each row.
        calls: functions by name; the first is the reference, whose milliseconds stand in the row.
        peers: functions of other packages, which run as written alone: they read values back, and
            cannot be captured.
        repeats: how often each function of `calls` is timed; peers half as often, once at least.
    """
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for name, call in calls.items():
        for way, run in device.ways(call):
            times[way][name] = device.median(run, repeats)
    for name, call in peers.items():
        times[AS_WRITTEN][name] = device.median(call, max(1, repeats // 2))
    reference, *others = calls
    for way, measured in times.items():
        base = measured.get(reference, float("nan"))
        # A function that could not be captured is nan in the row of graphs; peers are not in it.
        named = [*others, *(name for name in peers if name in measured)]
        yield {
            **conditions,
            "run": way,
            reference: round(base, 3),
            **{name: round(measured.get(name, float("nan")) / base, 2) for name in named},
            "ok": all(name in measured for name in calls),
        }
