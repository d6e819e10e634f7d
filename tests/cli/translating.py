"""Calls of `translate` for tests, and what they write."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.cli import translate as command
from tests.commands import json_lines
from tests.in_process import success

Record = dict[str, Any]


class Translated(NamedTuple):
    """What the command wrote and printed."""

    folder: Path
    """It has the files `in`, `out` and `report.jsonl`."""
    lines: list[str]
    """Lines of the output."""
    records: list[Record]
    summary: Record
    printed: str

    @property
    def best(self) -> list[Record]:
        """The first hypothesis of each record that has one."""
        return [record["hypotheses"][0] for record in self.records if record["hypotheses"]]


class UnsureLine(NamedTuple):
    """A source line for which a model has several outputs.

    Attributes:
        source: its tokens, between spaces.
        outputs: all possible ones, the best first, with their probabilities.
    """

    source: str
    outputs: dict[str, float]

    @property
    def best_probability(self) -> float:
        """The probability of the best output."""
        return max(self.outputs.values())


def written_to(folder: Path, printed: str) -> Translated:
    """Return the files that the command wrote to a folder."""
    return Translated(
        folder,
        lines=(folder / "out").read_text().removesuffix("\n").split("\n"),
        records=json_lines(folder / "report.jsonl"),
        summary=json.loads((folder / "report.jsonl.summary.json").read_text()),
        printed=printed,
    )


def arguments_of(model: Path, folder: Path, text: str = "a b\n") -> list[object]:
    """Write a text; return the arguments that translate it."""
    (folder / "in").write_text(text)
    return ["-model", model, "-src", folder / "in", "-output", folder / "out"]


def translate(model: Path, folder: Path, text: str, *options: object) -> Translated:
    """Translate a text in this process, with an exactness report."""
    arguments = arguments_of(model, folder, text)
    report = ["-exactness_report", folder / "report.jsonl"]
    return written_to(folder, success(command.main, [*arguments, *report, *options]))
