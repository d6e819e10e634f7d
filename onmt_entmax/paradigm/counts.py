"""Counts over many cells: their warnings, and the forms that were left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onmt_entmax.errors import counted
from onmt_entmax.strings.details import left_out_text

if TYPE_CHECKING:
    from onmt_entmax.inflector import Inflection

_NAMED = 5  # warnings that are named; others are counted


@dataclass
class Doubts:
    """The warnings of many cells."""

    cells: int = 0
    doubtful: int = 0
    """Cells with warnings."""
    first: dict[str, tuple[str, int]] = field(default_factory=dict)
    """For each of the first warnings, the lemma of its first cell, and the number of cells."""
    others: int = 0
    """Cells with other warnings."""

    def add(self, cell: Inflection) -> None:
        """Count a cell."""
        self.cells += 1
        self.doubtful += bool(cell.warnings)
        named = [
            warning
            for warning in cell.warnings
            if warning in self.first or len(self.first) < _NAMED
        ]
        self.others += len(named) < len(cell.warnings)
        for warning in named:
            lemma, count = self.first.get(warning, (cell.question.lemma, 0))
            self.first[warning] = lemma, count + 1

    def lines(self) -> list[str]:
        """Return the first warnings, each with the number of its cells."""
        cells = counted(self.cells, "cell")
        lines = [
            f"{lemma}: {warning} ({count:,} of {cells})"
            for warning, (lemma, count) in self.first.items()
        ]
        if self.others:
            lines.append(f"others ({self.others:,} of {cells})")
        return lines


@dataclass
class LeftOut:
    """The forms of many cells that were left out as improbable."""

    forms: int = 0
    cells: int = 0
    """Cells that had some."""
    least: float = 0.0
    """Probability below which forms were left out, the largest of the cells'."""

    def add(self, cell: Inflection) -> None:
        """Count those of a cell."""
        self.forms += cell.left_out
        self.cells += bool(cell.left_out)
        self.least = max(self.least, cell.least)

    def text(self) -> str:
        """Return how many there are; nothing without any."""
        return left_out_text(self.forms, self.least, "form") if self.forms else ""


def left_out_of(cells: Iterable[Inflection]) -> str:
    """Return how many forms of some cells were left out as improbable; nothing without any."""
    left_out = LeftOut()
    for cell in cells:
        left_out.add(cell)
    return left_out.text()
