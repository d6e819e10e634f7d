"""The record of what was measured on the test set of a matrix: `<run>/test.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, read_object, write_files
from tools.papers.matrix import Matrix


class Inputs(TypedDict):
    """What a measurement depends on.

    Attributes:
        files: digests of texts, weights and subword models by path; None: a missing file.
        translate: options of decoding.
    """

    files: dict[str, str | None]
    translate: dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """A measurement of the test set.

    Attributes:
        name: name of the training or ensemble.
        date: time in UTC, in ISO format.
        figures: the measures of the evaluation, by name.
        inputs: what they depend on.
    """

    name: str
    date: str
    figures: dict[str, Any]
    inputs: Inputs

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Measurement:
        """Return the measurement of an entry, which has the figures beside the other keys.

        Raises:
            KeyError: the entry lacks a key.
        """
        figures = dict(entry)
        name, date, inputs = (figures.pop(key) for key in ("name", "date", "measured"))
        return cls(name, date, figures, inputs)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the file."""
        return {"name": self.name, "date": self.date, **self.figures, "measured": self.inputs}


@dataclass
class Record:
    """The measurements of the test set of a matrix.

    Attributes:
        path: path of the file.
        measurements: all measurements, in order of time.
        remaining: names of the jobs that `--again` has still to measure; `left` in the file.
    """

    path: Path
    measurements: list[Measurement]
    remaining: list[str]

    def last(self, name: str) -> Measurement | None:
        """Return the last measurement of a job; None if there is none."""
        measurements = [entry for entry in self.measurements if entry.name == name]
        return measurements[-1] if measurements else None

    def write(self) -> None:
        """Write the file."""
        content: dict[str, Any] = {"measurements": [entry.to_json() for entry in self.measurements]}
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
    try:
        measurements = [Measurement.from_json(entry) for entry in content.get("measurements", [])]
    except KeyError as error:
        raise UserError(f"{path}: damaged: a measurement without {error}") from None
    return Record(path, measurements, content.get("left", []))
