"""Write the rows of `predict`: the rows of its input, with the target filled in."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onmt_entmax.errors import printable
from onmt_entmax.prediction import Prediction
from onmt_entmax.proven_outputs import Output
from onmt_entmax.strings.details import DETAILS, left_out_text
from onmt_entmax.strings.tables import Layout, Row
from onmt_entmax.strings.task import LEFT_OUT, TARGET, StringTask


@dataclass(frozen=True)
class OutputLayout:
    """The columns of a predicted table.

    Attributes:
        table: the columns that were read.
        target_column: index of the target among the columns that are written.
        details: whether rank, probability, certificate and warnings follow.
        least: least probability of the outputs that are written.
    """

    table: Layout
    target_column: int
    details: bool = False
    least: float = 0.0

    @classmethod
    def of(
        cls, table: Layout, task: StringTask, *, details: bool = False, least: float = 0.0
    ) -> "OutputLayout":
        """Return the columns of a predicted table; a table without a target gets that column.

        Args:
            table: the columns that were read.
            task: task of the models.
            details: whether rank, probability, certificate and warnings follow.
            least: least probability of the outputs that are written.
        """
        if TARGET in table.columns:
            position = table.columns.index(TARGET)
        else:
            position = _new_column(table.columns, task.columns)
        return cls(table, position, details, least)

    def heading(self) -> str:
        """Return the heading as a line; empty if the table has none."""
        heading = self.table.heading
        if not heading:
            return ""
        target = heading[self.target_column] if TARGET in self.table.columns else TARGET
        return self._line(heading, target, DETAILS)

    def lines(self, row: Row, prediction: Prediction) -> Iterator[str]:
        """Yield a line for each output that is written; if there is none, one with an empty target.

        Args:
            row: the row of the input.
            prediction: the outputs that were predicted for it.
        """
        listed = prediction.outputs if self.details else prediction.outputs[:1]
        outputs = self.kept(listed)
        left_out = len(listed) - len(outputs)
        warnings = list(prediction.warnings)
        if left_out:
            warnings.append(left_out_text(left_out, self.least, "output"))
        certificate = [prediction.level, printable("; ".join(warnings))]
        for rank, output in enumerate(outputs, 1):
            # An output may contain a tab or a line end, if U+0009 or U+000A is a token.
            text = re.sub(r"[\t\n\r]", lambda match: printable(match[0]), output.text)
            yield self._line(row.cells, text, [str(rank), f"{output.prob:.6g}", *certificate])
        if not outputs:
            # 0 if nothing was found; unknown if all that was found is less probable than `least`.
            probability = "" if left_out else "0"
            yield self._line(row.cells, "", ["", probability, *certificate])

    def kept(self, outputs: Sequence[Output]) -> list[Output]:
        """Return the outputs that are probable enough."""
        return [output for output in outputs if output.prob >= self.least]

    def _line(self, cells: Sequence[str], target: str, details: Sequence[str]) -> str:
        """Return the line of a row: its cells with the target filled in, then the details."""
        line = list(cells)
        if TARGET in self.table.columns:
            line[self.target_column] = target
        else:
            line.insert(self.target_column, target)
        if self.details:
            line += details
        return self.table.text(line) + "\n"


def _new_column(columns: tuple[str, ...], trained: tuple[str, ...]) -> int:
    """Return the place of the target in a table that has none.

    If the target is the only missing column, it stands where it stood in training. Otherwise it
    follows the last column that stood before it in training:

        columns of training          columns of the table     with the target
        source, -, target, tags      source, -, tags          source, -, target, tags
        source, -, target, tags      tags, source             tags, source, target

    Args:
        columns: columns of the table.
        trained: columns of the tables of training, with the target.
    """
    position = trained.index(TARGET)
    before, after = trained[:position], trained[position + 1 :]
    if columns == before + after:
        return position
    earlier = {*before} - {LEFT_OUT}
    positions = [number for number, name in enumerate(columns) if name in earlier]
    return positions[-1] + 1 if positions else 0
