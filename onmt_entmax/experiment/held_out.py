"""Measure the test set of a matrix once, and record that.

The record, `test.json` in the folder of the matrix, keeps every measurement with its date and the
checksums of the weights and texts, so that nobody chooses by the test set unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from onmt_entmax.data.parallel import TEST
from onmt_entmax.errors import UserError
from onmt_entmax.experiment.matrix import Matrix, Training, Work, digest, translation
from onmt_entmax.experiment.measures import EVALUATIONS, figures_of
from onmt_entmax.experiment.runner import Processes, Stopped, decoding_command
from onmt_entmax.files import read_object, write_text
from onmt_entmax.locks import locked
from onmt_entmax.report.tables import aligned_table

RECORD = "test.json"


@dataclass(frozen=True)
class _Tested(Training):
    """A training whose model decodes the test set, in a folder below its own."""

    @property
    def run(self) -> Path:
        """Run folder of the training command."""
        return self.folder.parent / "model"


def files_of_test(matrix: Matrix) -> tuple[Path, Path]:
    """Return source and reference of the test set, which `prepare` writes beside the others.

    Raises:
        UserError: there is none.
    """
    paths = (matrix.source, matrix.reference)
    for folder in (TEST, "."):
        source, reference = (path.parent / folder / f"{TEST}{path.suffix}" for path in paths)
        if source.is_file() and reference.is_file():
            return source, reference
    raise UserError(
        f"{matrix.path}: no test set: {source} and {reference} are not there, nor in a folder "
        f"{TEST} beside; `prepare` writes them, if the corpus has a test set"
    )


def measure_once(matrices: Sequence[Matrix], again: bool) -> str:
    """Measure the test sets of matrices; return a table of all measurements.

    Args:
        matrices: of the pairs; all runs must be done.
        again: measure what has been measured before; the record then has both.

    Raises:
        UserError: a run is not done, there is no test set, or one was measured before with other
            weights, texts or options. Then nothing is measured.
    """
    due = [(matrix, each) for matrix in matrices for each in _due(matrix, again)]
    processes = Processes()
    with processes.passing_on():
        for matrix, work in due:
            try:
                _measure(matrix, work, processes)
            except Stopped:
                raise UserError("stopped; the same command continues") from None
    return "\n".join(_table(matrix) for matrix in matrices)


def _due(matrix: Matrix, again: bool) -> list[Work]:
    """Return what is to be measured."""
    source, reference = files_of_test(matrix)
    on_test = replace(matrix, source=source, reference=reference)
    work: list[Work] = [
        _Tested(on_test, each.cell, each.seed, each.folder / TEST) for each in matrix.trainings()
    ]
    work += [replace(e, matrix=on_test, folder=e.folder / TEST) for e in matrix.ensembles()]
    on_dev: list[Work] = [*matrix.trainings(), *matrix.ensembles()]
    undone = [each.name for each in on_dev if figures_of(each) is None]
    if undone:
        raise UserError(
            f"{matrix.path}: not done: {', '.join(undone)}; the test set is measured when all runs "
            "are done"
        )
    if again:
        return work
    before = {entry["name"]: entry for entry in measurements(matrix)}
    for each in work:
        entry = before.get(each.name)
        if entry is not None and entry["measured"] != _measured(each):
            raise UserError(
                f"{matrix.path}: {each.name} was measured on {entry['date']} with other weights, "
                "texts or options; --again measures once more, and the record keeps both"
            )
    return [each for each in work if each.name not in before]


def _measured(work: Work) -> dict[str, Any]:
    """Return what a measurement depends on: checksums by file, and the options of decoding."""
    weights = [model / "model.safetensors" for model in work.models()]
    files = (work.matrix.source, work.matrix.reference, *weights)
    options = translation(work)
    return {"files": {str(path): digest(path) for path in files}, "translate": options}


def _measure(matrix: Matrix, work: Work, processes: Processes) -> None:
    """Decode and measure the test set with one model or ensemble; add it to the record."""
    work.folder.mkdir(exist_ok=True)
    with locked(work.folder):
        processes.run(decoding_command(work), work.folder / "log.txt", None)
        figures = EVALUATIONS[matrix.evaluate](work)
    entry = {
        "name": work.name,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **figures,
        "measured": _measured(work),
    }
    content = {"measurements": [*measurements(matrix), entry]}
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_text(matrix.run / RECORD, text)


def measurements(matrix: Matrix) -> list[dict[str, Any]]:
    """Return the recorded measurements of a matrix.

    Raises:
        UserError: the record is damaged.
    """
    path = matrix.run / RECORD
    if not path.is_file():
        return []
    entries = read_object(path).get("measurements")
    keys = {"name", "date", "measured"}  # and at least one figure
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and keys < entry.keys() for entry in entries
    ):
        raise UserError(f"{path}: damaged; put a copy back, or delete it to begin a new record")
    return entries


def _table(matrix: Matrix) -> str:
    """Return a line for each measurement: run, figure, date."""
    rows = []
    for entry in measurements(matrix):
        figure = next(key for key in entry if key not in ("name", "date"))
        rows.append((entry["name"], f"{figure} {entry[figure]:.2f}", entry["date"]))
    return f"{aligned_table(rows, left=3)}\nrecorded in {matrix.run / RECORD}"
