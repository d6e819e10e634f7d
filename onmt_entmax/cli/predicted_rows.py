"""The rows that `predict` writes: columns, lines, and counts of what was found."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.cli.ending import note, warn
from onmt_entmax.errors import counted, printable
from onmt_entmax.prediction import Output, Prediction
from onmt_entmax.strings.details import DETAILS, LEVELS, left_out_text
from onmt_entmax.strings.tables import Layout, Row
from onmt_entmax.strings.task import LEFT_OUT, TARGET, StringTask


@dataclass(frozen=True)
class OutputLayout:
    """The columns of a predicted table.

    Attributes:
        layout: of the table that was read.
        target_column: of the target.
        details: whether rank, probability, certificate and warnings follow.
        least: probability of an output; others are left out.
    """

    layout: Layout
    target_column: int
    details: bool
    least: float = 0.0

    @classmethod
    def of(
        cls, layout: Layout, task: StringTask, details: bool, least: float = 0.0
    ) -> "OutputLayout":
        """Return the columns of a table; without a target, it stands where training has it."""
        columns = layout.columns
        if TARGET in columns:
            return cls(layout, columns.index(TARGET), details, least)
        position = task.columns.index(TARGET)
        if columns != task.columns[:position] + task.columns[position + 1 :]:
            # Behind the last of the columns that stand before it in training.
            before = {*task.columns[:position]} - {LEFT_OUT}
            position = 1 + max((n for n, name in enumerate(columns) if name in before), default=-1)
        return cls(layout, position, details, least)

    def heading(self) -> str:
        """Return the heading as a line; nothing if the table has none."""
        heading = self.layout.heading
        if not heading:
            return ""
        target = heading[self.target_column] if TARGET in self.layout.columns else TARGET
        return self._line(heading, target, DETAILS)

    def lines(self, row: Row, prediction: Prediction) -> Iterator[str]:
        """Yield the lines of a prediction; one with an empty target if there is no output."""
        listed = prediction.outputs if self.details else prediction.outputs[:1]
        outputs = self.kept(listed)
        left_out = len(listed) - len(outputs)
        warnings = list(prediction.warnings)
        if left_out:
            warnings.append(left_out_text(left_out, self.least, "output"))
        certificate = [prediction.level, printable("; ".join(warnings))]
        for rank, output in enumerate(outputs, 1):
            # An output may have a tab or a line end: its token is U+0009 or U+000A.
            text = re.sub(r"[\t\n\r]", lambda match: printable(match[0]), output.text)
            yield self._line(row.cells, text, [str(rank), f"{output.prob:.6g}", *certificate])
        if not outputs:
            probability = "" if left_out else "0"
            yield self._line(row.cells, "", ["", probability, *certificate])

    def kept(self, outputs: Sequence[Output]) -> list[Output]:
        """Return the outputs that are probable enough."""
        return [output for output in outputs if output.prob >= self.least]

    def _line(self, cells: Sequence[str], target: str, details: Sequence[str]) -> str:
        """Return the line of a row: its cells with the target filled in, then the details."""
        line = list(cells)
        if TARGET in self.layout.columns:
            line[self.target_column] = target
        else:
            line.insert(self.target_column, target)
        if self.details:
            line += details
        return self.layout.text(line) + "\n"


@dataclass
class Progress:
    """How far a table is, and what was found in it; it is recorded beside the output."""

    rows: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    odd: int = 0
    """Rows with warnings."""
    first: str = ""
    """The first row with warnings."""
    without: int = 0
    """Rows without an output."""
    empty: int = 0
    """Rows whose most probable output is empty."""
    left_out: int = 0
    """Outputs that are too improbable."""
    bare: int = 0
    """Rows all of whose outputs are too improbable."""

    @classmethod
    def read(cls, recorded: Mapping[str, Any]) -> "Progress":
        """Return what `record` recorded; nothing done, if that is empty."""
        return cls(**{**recorded, "levels": Counter(recorded.get("levels", {}))})

    def record(self) -> dict[str, Any]:
        """Return all as JSON has it."""
        return {**vars(self), "levels": dict(self.levels)}

    def add(self, row: Row, prediction: Prediction, layout: OutputLayout) -> None:
        """Count a prediction."""
        kept = layout.kept(prediction.outputs)
        self.left_out += len(prediction.outputs) - len(kept)
        self.bare += bool(prediction.outputs) and not kept
        self.rows += 1
        self.levels[prediction.level] += 1
        self.without += not prediction.outputs
        self.empty += bool(prediction.outputs) and not prediction.text
        if prediction.warnings:
            self.odd += 1
            self.first = self.first or f"{row.query.source}: {'; '.join(prediction.warnings)}"

    def tell(self, where: str, least: float, verb: str = "") -> None:
        """Print what was found, and warn of what may be wrong.

        Args:
            where: the table.
            least: probability of an output.
            verb: what was done to it, if that is to be said.
        """
        shares = ", ".join(f"{name} {self.levels[name] / self.rows:.2%}" for name in LEVELS)
        print(printable(f"{verb}{where}: {counted(self.rows, 'row')}; {shares}"), file=sys.stderr)
        if self.left_out:
            text = left_out_text(self.left_out, least, "output")
            if self.bare:
                text += f"; rows that have no other: {self.bare:,} of {self.rows:,}"
            note(f"{where}: {text}")
        if self.without:
            warn(f"{where}: rows without an output: {self.without:,} of {self.rows:,}")
        if self.empty:
            warn(f"{where}: rows with an empty output: {self.empty:,} of {self.rows:,}")
        if self.odd:
            share = f"rows with warnings: {self.odd:,} of {self.rows:,}"
            warn(f"{where}: {self.first} ({share})")
