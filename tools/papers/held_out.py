"""Measure test sets, once: what was measured, when and with which files stays recorded.

`--again` adds measurements to the record; while it is at work, the record also has the names of
those still to be measured, so that it can continue after a stop.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.report.tables import aligned_table
from tools.papers.evaluation import EVALUATE
from tools.papers.held_out_record import read_record
from tools.papers.matrix import Matrix, Work
from tools.papers.matrix_file import CHOSEN_TO_DECODE
from tools.papers.run_figures import figures_of
from tools.papers.runner import Runner, Stopped, say


def _conditions(work: Work) -> dict[str, Any]:
    """Return what a measurement depends on: checksums by file, and the options of decoding."""
    return {"files": work.digests(), "translate": work.decoding_options()}


def _without_folders(conditions: Mapping[str, Any]) -> tuple[object, object]:
    """Return files by name, and options of decoding: a folder that was moved has the same ones."""
    files = sorted((Path(path).name, str(digest)) for path, digest in conditions["files"].items())
    options = conditions["translate"].items()
    return files, {name: value for name, value in options if name not in CHOSEN_TO_DECODE}


def _is_measured(work: Work) -> bool:
    """Return whether the record has a measurement of a training or ensemble.

    Raises:
        UserError: it has one of other weights, texts or options.
    """
    entry = read_record(work.matrix).last(work.name)
    if entry is None:
        return False
    if _without_folders(entry["measured"]) != _without_folders(_conditions(work)):
        raise UserError(
            f"{work.matrix.path}: {work.name} was measured on {entry['date']} with other weights, "
            "texts or options; --again measures once more, and the record keeps both"
        )
    return True


# --- the command -----------------------------------------------------------------------------


def measure_test_sets(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Measure test sets, unless that was done, and print all measurements.

    Raises:
        UserError: a run is not done, there is no test set, or one was measured before with other
            weights, texts or options. Then nothing is measured.
    """
    works = [work for matrix in matrices for work in _on_test_set(matrix)]
    if options.again:
        due = _begin_again(works)
    else:
        due = [work for work in works if not _is_measured(work)]
    runner = Runner([None])
    with runner.passing_signals_on():
        for work in due:
            _measure(work, runner)
    for matrix in matrices:
        _print_record(matrix)
    return 0


def _on_test_set(matrix: Matrix) -> list[Work]:
    """Return the trainings and ensembles of a matrix, with the test set as their text.

    Raises:
        UserError: one is not done, or there is no test set.
    """
    works = [*matrix.trainings(), *matrix.ensembles()]
    undone = [work.name for work in works if figures_of(work) is None]
    if undone:
        raise UserError(
            f"{matrix.path}: not done: {', '.join(undone)}; the test set is measured when all runs "
            "are done"
        )
    on_test = _with_test_set(matrix)
    return [replace(work, matrix=on_test, part="test") for work in works]


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


def _begin_again(works: Sequence[Work]) -> list[Work]:
    """Return what `--again` is to measure: all, or what it had left when it was stopped.

    The names are recorded first, until each is measured.
    """
    left = [work for work in works if work.name in read_record(work.matrix).left]
    if left:
        say(f"continues: {len(left)} of {len(works)} are left to measure again")
        return left
    for work in works:
        record = read_record(work.matrix)
        record.left.append(work.name)
        record.write()
    return list(works)


def _measure(work: Work, runner: Runner) -> None:
    """Decode the test set with a training or ensemble, and record its figures.

    Raises:
        UserError: a signal came, or the command failed.
    """
    work.output.parent.mkdir(exist_ok=True)
    try:
        runner.decode(work)
    except Stopped:
        raise UserError("stopped; the same command continues") from None
    figures = EVALUATE[work.matrix.evaluate].measure(work)
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    record = read_record(work.matrix)
    record.measurements.append(
        {"name": work.name, "date": date, **figures, "measured": _conditions(work)}
    )
    record.left = [name for name in record.left if name != work.name]
    record.write()


def _print_record(matrix: Matrix) -> None:
    """Print all measurements of a matrix, each with its main figure."""
    record = read_record(matrix)
    rows = [(entry["name"], _main_figure(entry), entry["date"]) for entry in record.measurements]
    print(f"{aligned_table(rows, left=3)}\nrecorded in {record.path}")


def _main_figure(entry: Mapping[str, Any]) -> str:
    """Return name and value of a measurement's main figure, by whatever it was evaluated."""
    names = [evaluation.main for evaluation in EVALUATE.values() if evaluation.main in entry]
    return ", ".join(f"{name} {entry[name]:.2f}" for name in names)
