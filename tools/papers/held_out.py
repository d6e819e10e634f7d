"""The command `tools.papers.tables test`: measure test sets, and refuse to do so twice.

The record of a matrix says what was measured, when, and with which files and options. `--again`
adds measurements to it; until these are done, the record also names those that remain, so that the
same command continues after a stop.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.report.tables import aligned_table
from tools.papers.commands import Commands, Stopped
from tools.papers.evaluation import EVALUATE
from tools.papers.held_out_record import Inputs, Measurement, read_record
from tools.papers.job_figures import figures_of
from tools.papers.job_runner import Runner
from tools.papers.matrix import Job, Matrix
from tools.papers.matrix_file import CHOSEN_TO_DECODE
from tools.papers.progress import say


def measure_test_sets(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Measure test sets that have not been measured, and print all measurements.

    Args:
        options: `again`: measure all, even if that was done.
        matrices: the matrices, all of whose trainings and ensembles are measured.

    Returns:
        The exit status.

    Raises:
        UserError: a run is not done, there is no test set, or one was measured before with other
            weights, texts or options; then nothing is measured. Or decoding was stopped or failed.
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
    if _without_folders(measurement.inputs) != _without_folders(_inputs(job)):
        raise UserError(
            f"{job.matrix.path}: {job.name} was measured on {measurement.date} with other "
            "weights, texts or options; --again measures once more, and the record keeps both"
        )
    return True


def _measured_again(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that `--again` has to measure: all, or those that a stop has left.

    Their names are recorded here, and removed from the record as each one is measured.
    """
    remaining = [job for job in jobs if job.name in read_record(job.matrix).remaining]
    if remaining:
        say(f"continues: {len(remaining)} of {len(jobs)} are left to measure again")
        return remaining
    for matrix, jobs_of_matrix in groupby(jobs, key=lambda job: job.matrix):
        record = read_record(matrix)
        record.remaining = [job.name for job in jobs_of_matrix]
        record.write()
    return list(jobs)


def _inputs(job: Job) -> Inputs:
    """Return what the measurement of a job depends on."""
    return {"files": job.digests(), "translate": job.decoding_options()}


def _without_folders(inputs: Inputs) -> dict[str, object]:
    """Return inputs without paths, which change if a folder is moved; names of files stay."""
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
    record.measurements.append(Measurement(job.name, date, figures, _inputs(job)))
    record.remaining = [name for name in record.remaining if name != job.name]
    record.write()


def _print_record(matrix: Matrix) -> None:
    """Print all measurements of a matrix, each with its main figure."""
    record = read_record(matrix)
    main = EVALUATE[matrix.evaluate].main
    rows = [
        (measurement.name, _figure_text(measurement, main), measurement.date)
        for measurement in record.measurements
    ]
    print(f"{aligned_table(rows, left=3)}\nrecorded in {record.path}")


def _figure_text(measurement: Measurement, name: str) -> str:
    """Return name and value of a figure; a measurement by another evaluation does not have it."""
    value = measurement.figures.get(name)
    return f"no {name}" if value is None else f"{name} {value:.2f}"
