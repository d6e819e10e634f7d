"""The record of the test set of a matrix, `<run>/test.json`."""

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
        measurements: each has name, date and figures of a training or ensemble, and `measured`,
            what they depend on.
        left: names of those that `--again` has still to measure.
    """

    path: Path
    measurements: list[dict[str, Any]]
    left: list[str]

    def last(self, name: str) -> dict[str, Any] | None:
        """Return the last measurement of a training or ensemble; None if there is none."""
        entries = [entry for entry in self.measurements if entry["name"] == name]
        return entries[-1] if entries else None

    def write(self) -> None:
        """Write the file."""
        content: dict[str, Any] = {"measurements": self.measurements}
        if self.left:
            content["left"] = self.left
        write_files({self.path: json_text(content)})


def read_record(matrix: Matrix) -> Record:
    """Return the record of a matrix, which may be empty.

    Raises:
        UserError: the file is damaged.
    """
    path = matrix.folder / "test.json"
    content = read_object(path) if path.is_file() else {}
    return Record(path, content.get("measurements", []), content.get("left", []))
