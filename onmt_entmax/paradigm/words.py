"""The forms of many paradigms as a list of words, and whether anything else is possible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from onmt_entmax.errors import counted
from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.counts import LeftOut, WarningCounts


class WordList(ABC):
    """All forms of many cells; a subclass writes them in one format.

    Attributes:
        program: the program that reads the format, for messages.
        place_of_others: what happens to forms that are no words of the format, for messages.
        weights: for each form, the expected number of cells that have it.
        lemmas: for each form, the first lemma that has it.
        warnings: warnings of the cells.
    """

    program: ClassVar[str]
    place_of_others: ClassVar[str] = "are left out"

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.lemmas: dict[str, str] = {}
        self.warnings = WarningCounts()
        self._left_out = LeftOut()
        self._unfinished_cells = 0  # cells whose forms were not all found
        self._least_mass = 1.0  # the smallest sum of probabilities of a cell's forms

    def add(self, cell: Inflection) -> None:
        """Add the forms of a cell."""
        self.warnings.add(cell)
        self._left_out.add(cell)
        if cell.level not in ("only", "exhaustive"):
            self._unfinished_cells += 1
        self._least_mass = min(self._least_mass, sum(form.prob for form in cell.forms))
        for form in cell.forms:
            self.weights[form.text] = self.weights.get(form.text, 0.0) + form.prob
            self.lemmas.setdefault(form.text, cell.question.lemma)

    def names(self, output: Path) -> list[Path]:
        """Return the names of the files; they do not depend on the forms."""
        return [*self.files(output)]

    @abstractmethod
    def files(self, output: Path) -> dict[Path, str]:
        """Return the content of each file of the list; the names do not depend on the forms.

        Args:
            output: where to write; if there are several files, the beginning of their names.
        """

    @abstractmethod
    def is_word(self, form: str) -> bool:
        """Return whether the format can hold a form as a word."""

    def holds_lemma(self, lemma: str) -> bool:
        """Return whether the format can hold a lemma."""
        return True

    def others(self) -> list[str]:
        """Return the forms that are no words of the format."""
        return sorted(form for form in self.weights if not self.is_word(form))

    def left_out(self) -> list[str]:
        """Return the forms that are in no file: `others`, unless a subclass has a file for them."""
        return self.others()

    def completeness(self) -> str:
        """Return a line that says whether the list is complete: no other form is possible.

        `mass` in it is the probability that the forms have together in each cell.
        """
        reasons = list(self._reasons())
        if not reasons:
            return f"complete: mass {self._least_mass:.6f}"
        mass = f"mass at least {self._least_mass:.6f} in each cell"
        return f"incomplete: {'; '.join([mass, *reasons])}"

    def _reasons(self) -> Iterator[str]:
        """Yield the reasons why the list may not be complete."""
        cells = counted(self.warnings.cells, "cell")
        if self._unfinished_cells:
            yield f"something is missing in {self._unfinished_cells:,} of {cells}"
        if self._left_out.forms:
            yield f"{self._left_out.text()} in {self._left_out.cells:,} of {cells}"
        if self.warnings.with_warnings:
            yield f"there are warnings in {self.warnings.with_warnings:,} of {cells}"
        others = self.others()
        if others:
            forms = f"{len(others):,} of {counted(len(self.weights), 'form')}"
            reason = f"which {self.program} cannot read as a word, {self.place_of_others}"
            yield f"{forms}, {reason}"


def file_text(lines: Iterable[str]) -> str:
    """Return the content of a file with these lines."""
    return "".join(f"{line}\n" for line in lines)
