"""Count the predicted rows of a table. An unfinished output records the counts beside it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.cli.output_layout import OutputLayout
from onmt_entmax.errors import counted
from onmt_entmax.prediction import Prediction
from onmt_entmax.strings.details import LEVELS, left_out_text
from onmt_entmax.strings.tables import Row


@dataclass
class PredictionCounts:
    """Counts over the rows of a table that are predicted.

    Attributes:
        rows: predicted rows.
        levels: rows by the level of their certificate.
        with_warnings: rows with warnings.
        first_warning: source and warnings of the first row with warnings; empty if there is none.
        without_output: rows for which the search found no output.
        with_empty_output: rows whose most probable output is written, and is empty.
        outputs_left_out: outputs that are less probable than `--least`.
        with_all_left_out: rows all of whose outputs are less probable than `--least`.
    """

    rows: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    with_warnings: int = 0
    first_warning: str = ""
    without_output: int = 0
    with_empty_output: int = 0
    outputs_left_out: int = 0
    with_all_left_out: int = 0

    @classmethod
    def read(cls, recorded: Mapping[str, Any]) -> "PredictionCounts":
        """Return the counts of a record; an empty record has no rows."""
        return cls(**{**recorded, "levels": Counter(recorded.get("levels", {}))})

    def record(self) -> dict[str, Any]:
        """Return the counts as an object for JSON."""
        return {**vars(self), "levels": dict(self.levels)}

    def add(self, row: Row, prediction: Prediction, layout: OutputLayout) -> None:
        """Count the prediction of a row, which is written in a layout."""
        self.rows += 1
        self.levels[prediction.level] += 1
        outputs = prediction.outputs
        kept = layout.kept(outputs)
        self.outputs_left_out += len(outputs) - len(kept)
        if not outputs:
            self.without_output += 1
        elif not kept:
            self.with_all_left_out += 1
        elif not prediction.text:
            self.with_empty_output += 1
        if prediction.warnings:
            self.with_warnings += 1
            if not self.first_warning:
                warnings = "; ".join(prediction.warnings)
                self.first_warning = f"{row.query.source}: {warnings}"

    def summary(self) -> str:
        """Return the number of rows, and the share of each level of certificates among them."""
        texts = [counted(self.rows, "row")]
        if self.rows:
            shares = (f"{name} {self.levels[name] / self.rows:.2%}" for name in LEVELS)
            texts.append(", ".join(shares))
        return "; ".join(texts)

    def left_out(self, least: float) -> str:
        """Return how many outputs are left out, and how many rows thereby have no output.

        Args:
            least: least probability of the outputs that are written.
        """
        text = left_out_text(self.outputs_left_out, least, "output")
        if self.with_all_left_out:
            text += f"; rows that have no other: {self._share(self.with_all_left_out)}"
        return text

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each kind of likely mistake."""
        if self.without_output:
            yield f"rows without an output: {self._share(self.without_output)}"
        if self.with_empty_output:
            yield f"rows with an empty output: {self._share(self.with_empty_output)}"
        if self.with_warnings:
            share = self._share(self.with_warnings)
            yield f"{self.first_warning} (rows with warnings: {share})"

    def _share(self, rows: int) -> str:
        """Return a number of rows and the number of all rows, such as `3 of 1,000`."""
        return f"{rows:,} of {self.rows:,}"
