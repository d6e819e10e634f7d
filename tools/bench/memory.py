"""Peak memory of functions, each measured in its own process; this needs the /proc of Linux."""

from __future__ import annotations

import gc
import math
import os
import resource
import traceback
from collections.abc import Callable
from typing import NamedTuple

from onmt_entmax.errors import UserError
from tools.bench.cases import Case, Measurement


def peak_memory(case: Case) -> dict[str, Measurement]:
    """Return the MiB that each contender adds at its peak, and the ratio to the first.

    Raises:
        UserError: the system has no /proc, or a contender failed.
    """
    if not os.path.exists("/proc/self/statm"):
        raise UserError("--memory: reads /proc, which only Linux has")
    mebibytes = {name: _peak_in_child(run) / 2**20 for name, run in case.contenders.items()}
    reference = next(iter(mebibytes.values()))
    results = {}
    for name, size in mebibytes.items():
        ratio = size / reference if reference else math.nan
        results[name] = Measurement({"MiB": size, "ratio": ratio}, f"{size:.0f} MiB ({ratio:.2f})")
    return results


def _peak_in_child(contender: Callable[[], object]) -> int:
    """Return the bytes that a function adds at its peak, measured in a new process.

    Pages that map files are not counted: they are library code, which the new process reads on
    demand. At the peak, there are assumed to be as many of them as after the run.

    Raises:
        UserError: the process ended without a result, such as for lack of memory.
    """
    gc.collect()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before = _resident()
            contender()
            after = _resident()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # it counts KiB
            added = (peak - after.files) - (before.total - before.files)
            os.write(writer, str(added).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)  # the caller's stack is not this process's to unwind
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer:
        raise UserError("--memory: the process that was measured ended early; see above")
    return int(answer)


class _Resident(NamedTuple):
    """Resident bytes of this process.

    Attributes:
        total: all of them.
        files: those that map files.
    """

    total: int
    files: int


def _resident() -> _Resident:
    """Return the resident memory of this process now."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        _, total, files, *_ = (int(pages) for pages in statm.read().split())
    page = resource.getpagesize()
    return _Resident(total * page, files * page)
