"""Processors that `tools.papers.tables run` may use."""

from __future__ import annotations

import os

from onmt_entmax.errors import UserError


def processors(names: str | None, jobs: int) -> list[int | None]:
    """Return the processor of each job; None leaves the choice to the system.

    Args:
        names: numbers of different processors, such as `0,1`; None or "": the system chooses.
        jobs: number of jobs.

    Raises:
        UserError: the processors are too few, not there or repeated, or the system binds no process
            to one.
    """
    if not names:
        return [None for _ in range(jobs)]
    if not hasattr(os, "sched_getaffinity"):
        raise UserError("--cores: this system binds no process to a processor; leave it out")
    try:
        cores = [int(number) for number in names.split(",")]
    except ValueError:
        raise UserError(f"--cores: expected numbers such as 0,1, not {names}") from None
    if len({*cores}) < len(cores):
        raise UserError(f"--cores: {names} names a processor twice")
    available = sorted(os.sched_getaffinity(0))
    if len(cores) < jobs or not {*cores} <= {*available}:
        raise UserError(f"--cores: name {jobs} of the processors {available}")
    return list(cores[:jobs])
