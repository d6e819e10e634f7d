"""Count the warnings of many cells, and the forms that were left out of them.

The cells of a paradigm, perhaps 100, mostly have the same warnings, so each is shown once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from onmt_entmax.errors import counted
from onmt_entmax.inflection import Inflection
from onmt_entmax.strings.details import left_out_text

_MOST_NAMED = 5  # different warnings that are shown; cells with any other are only counted


@dataclass
class NamedWarning:
    """A warning that is shown with its count.

    Attributes:
        lemma: lemma of the first cell that has it.
        cells: number of cells that have it.
    """

    lemma: str
    cells: int = 0


@dataclass
class WarningCounts:
    """The warnings of many cells.

    Attributes:
        cells: number of the cells.
        with_warnings: number of cells that have any warning.
        named: the first `_MOST_NAMED` different warnings, by their texts.
        with_others: number of cells that have a warning which is not named.
    """

    cells: int = 0
    with_warnings: int = 0
    named: dict[str, NamedWarning] = field(default_factory=dict)
    with_others: int = 0

    def add(self, cell: Inflection) -> None:
        """Count a cell."""
        self.cells += 1
        if cell.warnings:
            self.with_warnings += 1
        for warning in cell.warnings:
            if len(self.named) < _MOST_NAMED:
                self.named.setdefault(warning, NamedWarning(cell.question.lemma))
            if warning in self.named:
                self.named[warning].cells += 1
        if any(warning not in self.named for warning in cell.warnings):
            self.with_others += 1

    def lines(self) -> list[str]:
        """Return the named warnings, each with the number of its cells."""
        cells = counted(self.cells, "cell")
        lines = [
            f"{named.lemma}: {warning} ({named.cells:,} of {cells})"
            for warning, named in self.named.items()
        ]
        if self.with_others:
            lines.append(f"others ({self.with_others:,} of {cells})")
        return lines


@dataclass
class LeftOut:
    """The forms of many cells that were left out as improbable.

    Attributes:
        forms: number of the forms that were left out.
        cells: number of cells from which some were left out.
        threshold: probability below which forms were left out; the largest one, if cells differ.
    """

    forms: int = 0
    cells: int = 0
    threshold: float = 0.0

    def add(self, cell: Inflection) -> None:
        """Count the forms that a cell left out."""
        self.forms += cell.left_out
        if cell.left_out:
            self.cells += 1
        self.threshold = max(self.threshold, cell.least)

    def text(self) -> str:
        """Return a text that says how many forms were left out; empty if there are none."""
        return left_out_text(self.forms, self.threshold, "form") if self.forms else ""


def left_out_of(cells: Iterable[Inflection]) -> str:
    """Return a text that says how many forms of some cells were left out; empty if none were."""
    left_out = LeftOut()
    for cell in cells:
        left_out.add(cell)
    return left_out.text()
