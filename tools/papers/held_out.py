"""The command `tools.papers.tables test`: measure test sets, and refuse to do so twice.

The record of a matrix says what was measured, when, and with which files and options. `--again`
adds measurements to it; until these are done, the record also names those that remain, so that the
same command continues after a stop.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypedDict

from onmt_entmax.errors import UserError
from onmt_entmax.report.tables import aligned_table
from tools.papers.commands import Commands, Stopped
from tools.papers.evaluation import EVALUATE
from tools.papers.held_out_record import read_record
from tools.papers.job_figures import figures_of
from tools.papers.job_runner import Runner, say
from tools.papers.matrix import Job, Matrix
from tools.papers.matrix_file import CHOSEN_TO_DECODE


def measure_test_sets(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Measure test sets, unless that was done, and print all measurements.

    Raises:
        UserError: a run is not done, there is no test set, or one was measured before with other
            weights, texts or options. Then nothing is measured.
    """
    jobs = [job for matrix in matrices for job in _test_jobs(matrix)]
    if options.again:
        remaining = _measured_again(jobs)
    else:
        remaining = [job for job in jobs if not _is_measured(job)]
    commands = Commands()
    runner = Runner(commands, [None])
    with commands.passing_signals_on():
        for job in remaining:
            _measure(job, runner)
    for matrix in matrices:
        _print_record(matrix)
    return 0


# --- the jobs to measure ---------------------------------------------------------------------


def _test_jobs(matrix: Matrix) -> list[Job]:
    """Return the trainings and ensembles of a matrix, with the test set as their text.

    Raises:
        UserError: one is not done, or there is no test set.
    """
    undone = [job.name for job in matrix.jobs() if figures_of(job) is None]
    if undone:
        raise UserError(
            f"{matrix.path}: not done: {', '.join(undone)}; the test set is measured when all runs "
            "are done"
        )
    on_test = _with_test_set(matrix)
    return [replace(job, matrix=on_test, split="test") for job in matrix.jobs()]


def _with_test_set(matrix: Matrix) -> Matrix:
    """Return a matrix with the test set in place of the development set.

    Raises:
        UserError: there is no test set.
    """
    source, reference = (
        path.with_name(f"test{path.suffix}") for path in (matrix.source, matrix.reference)
    )
    in_folder = [path.parent / "test" / path.name for path in (source, reference)]
    for pair in (in_folder, [source, reference]):
        if all(path.is_file() for path in pair):
            return replace(matrix, source=pair[0], reference=pair[1])
    raise UserError(
        f"{matrix.path}: no test set: {source} and {reference} are not there, nor in a folder "
        "test beside; `prepare` writes them, if the corpus has a test set"
    )


def _is_measured(job: Job) -> bool:
    """Return whether the record has a measurement of a job.

    Raises:
        UserError: it has one of other weights, texts or options.
    """
    measurement = read_record(job.matrix).last(job.name)
    if measurement is None:
        return False
    if _without_folders(measurement["measured"]) != _without_folders(_inputs(job)):
        raise UserError(
            f"{job.matrix.path}: {job.name} was measured on {measurement['date']} with other "
            "weights, texts or options; --again measures once more, and the record keeps both"
        )
    return True


def _measured_again(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that `--again` is to measure, and record their names until that is done.

    These are all jobs, or those that remained when it was stopped.
    """
    remaining = [job for job in jobs if job.name in read_record(job.matrix).remaining]
    if remaining:
        say(f"continues: {len(remaining)} of {len(jobs)} are left to measure again")
        return remaining
    for job in jobs:
        record = read_record(job.matrix)
        record.remaining.append(job.name)
        record.write()
    return list(jobs)


class _Inputs(TypedDict):
    """What a measurement depends on, as the record has it.

    Attributes:
        files: digests by path; None: a missing file.
        translate: options of decoding.
    """

    files: dict[str, str | None]
    translate: dict[str, Any]


def _inputs(job: Job) -> _Inputs:
    """Return what the measurement of a job depends on."""
    return {"files": job.digests(), "translate": job.decoding_options()}


def _without_folders(inputs: _Inputs) -> dict[str, object]:
    """Return what stays equal in the inputs if a folder is moved: names of files, no paths."""
    options = inputs["translate"].items()
    return {
        "files": sorted((Path(path).name, str(digest)) for path, digest in inputs["files"].items()),
        "translate": {name: value for name, value in options if name not in CHOSEN_TO_DECODE},
    }


# --- measurements ----------------------------------------------------------------------------


def _measure(job: Job, runner: Runner) -> None:
    """Decode the test set with the models of a job, and record its figures.

    Raises:
        UserError: a signal came, or the command failed.
    """
    job.output.parent.mkdir(exist_ok=True)
    try:
        runner.decode(job)
    except Stopped:
        raise UserError("stopped; the same command continues") from None
    figures = EVALUATE[job.matrix.evaluate].measure(job)
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    record = read_record(job.matrix)
    record.measurements.append(
        {"name": job.name, "date": date, **figures, "measured": _inputs(job)}
    )
    record.remaining = [name for name in record.remaining if name != job.name]
    record.write()


def _print_record(matrix: Matrix) -> None:
    """Print all measurements of a matrix, each with its main figure."""
    record = read_record(matrix)
    rows = [
        (measurement["name"], _main_figure(measurement), measurement["date"])
        for measurement in record.measurements
    ]
    print(f"{aligned_table(rows, left=3)}\nrecorded in {record.path}")


def _main_figure(measurement: Mapping[str, Any]) -> str:
    """Return name and value of the main figure, whichever evaluation it is of."""
    names = [evaluation.main for evaluation in EVALUATE.values() if evaluation.main in measurement]
    return ", ".join(f"{name} {measurement[name]:.2f}" for name in names)
