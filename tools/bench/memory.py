"""Peak memory of functions, each in a process of its own; only Linux tells it, in /proc."""

from __future__ import annotations

import gc
import math
import os
import resource
import traceback
from collections.abc import Callable

from onmt_entmax.errors import UserError
from tools.bench.cases import Case, Measured


def peak_memory(case: Case) -> dict[str, Measured]:
    """Return the megabytes that each contender adds at its peak, and the ratio to the first.

    Raises:
        UserError: the system does not tell, or a contender failed.
    """
    if not os.path.exists("/proc/self/statm"):
        raise UserError("--memory: reads /proc, which only Linux has")
    megabytes = {name: _peak_in_child(run) / 2**20 for name, run in case.contenders.items()}
    reference = next(iter(megabytes.values()))
    results = {}
    for name, size in megabytes.items():
        ratio = size / reference if reference else math.nan
        results[name] = Measured({"MB": size, "ratio": ratio}, f"{size:.0f} MB ({ratio:.2f})")
    return results


def _peak_in_child(contender: Callable[[], object]) -> int:
    """Return the bytes that a function adds at its peak, measured in a process of its own.

    Pages of library code, which a new process reads on demand, are not counted: it is the peak
    minus the file pages after the run, minus the other pages before it.

    Raises:
        UserError: the process ended without a result, such as for lack of memory.
    """
    gc.collect()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resident, files = _resident()
            contender()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            os.write(writer, str(peak - _resident()[1] - (resident - files)).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)  # the caller's stack is not this process's to unwind
    os.close(writer)
    with os.fdopen(reader) as pipe:
        added = pipe.read()
    os.waitpid(child, 0)
    if not added:
        raise UserError("--memory: the process that was measured ended early; see above")
    return int(added)


def _resident() -> tuple[int, int]:
    """Return the resident bytes of this process, and how many of them map files."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        _, resident, files = (int(n) * resource.getpagesize() for n in statm.read().split()[:3])
    return resident, files
