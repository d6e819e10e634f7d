"""Measure test sets, once: what was measured, when and with which files stays recorded."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, read_object, write_files
from onmt_entmax.report.tables import aligned_table
from tools.papers.evaluation import EVALUATE, figures_of
from tools.papers.matrix import Matrix, Work
from tools.papers.running import Runner, Stopped


def test(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Measure the test set, unless that was done, and print all measurements.

    Raises:
        UserError: a run is not done, there is no test set, or one was measured before with other
            weights, texts or options. Then nothing is measured.
    """
    due = [(matrix, work) for matrix in matrices for work in _due(matrix, options.again)]
    runner = Runner([None])
    with runner.hearing():
        for matrix, work in due:
            work.output.parent.mkdir(exist_ok=True)
            try:
                runner.decode(work)
            except Stopped:
                raise UserError("stopped; the same command continues") from None
            date = datetime.now(timezone.utc).isoformat(timespec="seconds")
            figures = EVALUATE[matrix.evaluate](work)
            entry = {"name": work.name, "date": date, **figures, "measured": _measured(work)}
            content = {"measurements": [*tested(matrix), entry]}
            write_files({matrix.run / "test.json": json_text(content)})
    for matrix in matrices:
        rows = []
        for entry in tested(matrix):
            figure = next(key for key in entry if key not in ("name", "date"))
            rows.append((entry["name"], f"{figure} {entry[figure]:.2f}", entry["date"]))
        print(f"{aligned_table(rows, left=3)}\nrecorded in {matrix.run / 'test.json'}")
    return 0


def _measured(work: Work) -> dict[str, Any]:
    """Return what a measurement depends on: checksums by file, and the options of decoding."""
    return {"files": work.digests(), "translate": work.translation()}


def _due(matrix: Matrix, again: bool) -> list[Work]:
    """Return what is to be measured on the test set."""
    works = [*matrix.trainings(), *matrix.ensembles()]
    undone = [work.name for work in works if figures_of(work) is None]
    if undone:
        raise UserError(
            f"{matrix.path}: not done: {', '.join(undone)}; the test set is measured when all runs "
            "are done"
        )
    on_test = _with_test_set(matrix)
    works = [replace(work, matrix=on_test, part="test") for work in works]
    before = {entry["name"]: entry for entry in tested(matrix)}
    for work in works:
        entry = before.get(work.name)
        if entry and not again and entry["measured"] != _measured(work):
            raise UserError(
                f"{matrix.path}: {work.name} was measured on {entry['date']} with other weights, "
                "texts or options; --again measures once more, and the record keeps both"
            )
    return [work for work in works if again or work.name not in before]


def _with_test_set(matrix: Matrix) -> Matrix:
    """Return a matrix with the test set in place of the development set.

    Raises:
        UserError: there is no test set.
    """
    for folder in ("test", "."):
        source, reference = (
            path.parent / folder / f"test{path.suffix}"
            for path in (matrix.source, matrix.reference)
        )
        if source.is_file() and reference.is_file():
            return replace(matrix, source=source, reference=reference)
    raise UserError(
        f"{matrix.path}: no test set: {source} and {reference} are not there, nor in a folder "
        "test beside; `prepare` writes them, if the corpus has a test set"
    )


def tested(matrix: Matrix) -> list[dict[str, Any]]:
    """Return the recorded measurements of the test set of a matrix."""
    path = matrix.run / "test.json"
    entries: list[dict[str, Any]] = read_object(path)["measurements"] if path.is_file() else []
    return entries
