"""How far `predict` has come with a table, and what it found: recorded beside the output."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.predicted_rows import OutputLayout
from onmt_entmax.errors import counted, printable
from onmt_entmax.prediction import Prediction
from onmt_entmax.strings.details import LEVELS, left_out_text
from onmt_entmax.strings.tables import Row


@dataclass
class PredictionCounts:
    """Counts over the rows of a table that are predicted."""

    rows: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    """Rows by the level of their certificate."""
    with_warnings: int = 0
    first_warning: str = ""
    """The first source with warnings, and these."""
    without_output: int = 0
    with_empty_output: int = 0
    """Rows whose most probable output is empty."""
    outputs_left_out: int = 0
    """Outputs that are too improbable."""
    with_all_left_out: int = 0
    """Rows all of whose outputs are too improbable."""

    @classmethod
    def read(cls, recorded: Mapping[str, Any]) -> "PredictionCounts":
        """Return what `record` recorded; nothing done, if that is empty."""
        return cls(**{**recorded, "levels": Counter(recorded.get("levels", {}))})

    def record(self) -> dict[str, Any]:
        """Return all as JSON has it."""
        return {**vars(self), "levels": dict(self.levels)}

    def add(self, row: Row, prediction: Prediction, layout: OutputLayout) -> None:
        """Count a prediction."""
        self.rows += 1
        self.levels[prediction.level] += 1
        outputs = prediction.outputs
        kept = layout.kept(outputs)
        self.outputs_left_out += len(outputs) - len(kept)
        if not outputs:
            self.without_output += 1
        elif not kept:
            self.with_all_left_out += 1
        if outputs and not prediction.text:
            self.with_empty_output += 1
        if prediction.warnings:
            self.with_warnings += 1
            if not self.first_warning:
                warnings = "; ".join(prediction.warnings)
                self.first_warning = f"{row.query.source}: {warnings}"

    def tell(self, where: str, layout: OutputLayout, title: str = "") -> None:
        """Print what was found, and warn of what may be wrong.

        Args:
            where: the table.
            layout: of its lines.
            title: begins the first line in place of `where`.
        """
        shares = ", ".join(f"{name} {self.levels[name] / self.rows:.2%}" for name in LEVELS)
        said = f"{title or where}: {counted(self.rows, 'row')}; {shares}"
        print(printable(said), file=sys.stderr)
        if self.outputs_left_out:
            text = left_out_text(self.outputs_left_out, layout.least, "output")
            if self.with_all_left_out:
                text += f"; rows that have no other: {self._share(self.with_all_left_out)}"
            note(f"{where}: {text}")
        if self.without_output:
            warn(f"{where}: rows without an output: {self._share(self.without_output)}")
        if self.with_empty_output:
            warn(f"{where}: rows with an empty output: {self._share(self.with_empty_output)}")
        if self.with_warnings:
            share = f"rows with warnings: {self._share(self.with_warnings)}"
            warn(f"{where}: {self.first_warning} ({share})")

    def _share(self, rows: int) -> str:
        """Return how many of the rows these are."""
        return f"{rows:,} of {self.rows:,}"
