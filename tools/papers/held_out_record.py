"""The record of what was measured on the test set of a matrix: `<run>/test.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.files import json_text, read_object, write_files
from tools.papers.matrix import Matrix


@dataclass
class Record:
    """The measurements of the test set of a matrix.

    Attributes:
        path: of the file.
        measurements: each has the name of a job, the date, its figures, and under `measured` what
            these depend on.
        remaining: names of the jobs that `--again` has still to measure; `left` in the file.
    """

    path: Path
    measurements: list[dict[str, Any]]
    remaining: list[str]

    def last(self, name: str) -> dict[str, Any] | None:
        """Return the last measurement of a job; None if there is none."""
        measurements = [entry for entry in self.measurements if entry["name"] == name]
        return measurements[-1] if measurements else None

    def write(self) -> None:
        """Write the file."""
        content: dict[str, Any] = {"measurements": self.measurements}
        if self.remaining:
            content["left"] = self.remaining
        write_files({self.path: json_text(content)})


def read_record(matrix: Matrix) -> Record:
    """Return the record of a matrix, which may be empty.

    Raises:
        UserError: the file is damaged.
    """
    path = matrix.folder / "test.json"
    content = read_object(path) if path.is_file() else {}
    return Record(path, content.get("measurements", []), content.get("left", []))
