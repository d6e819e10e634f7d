"""A word list as a finite-state automaton from lemma and tags to forms, for HFST."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.words import WordList, file_text
from onmt_entmax.strings.marks import encode_tag
from onmt_entmax.strings.units import SPACE, encode_word


class Automaton(WordList):
    """An automaton in AT&T's format, with a path for each form of each cell.

    A path leads from state 0 to a final state of its own. It reads the lemma and the tags, and
    writes the form. Its weight, -log(probability), is on its first transition. A line is a
    transition (from, to, read symbol, written symbol, weight), or a final state alone.
    """

    program = "HFST"

    def __init__(self) -> None:
        super().__init__()
        self._transitions: list[str] = []
        self._last_state = 0

    def add(self, cell: Inflection) -> None:
        """Add the forms of a cell."""
        super().add(cell)
        query = [*encode_word(cell.question.lemma), *map(encode_tag, cell.question.tags)]
        for form in cell.forms:
            # Not `-log_prob`, which may be -0.
            self._add_path(query, encode_word(form.text), 0.0 - form.log_prob)

    def is_word(self, form: str) -> bool:
        """Return True: a path can have any symbol, since those that end columns are escaped."""
        return True

    def files(self, output: Path) -> dict[Path, str]:
        """Return the only file."""
        return {output: file_text(self._transitions)}

    def _add_path(self, upper: Sequence[str], lower: Sequence[str], weight: float) -> None:
        """Add a path from the first state to an end.

        Args:
            upper: symbols of the query, which are read.
            lower: symbols of the form, which are written.
            weight: weight of the path.
        """
        state = 0
        for position in range(max(len(upper), len(lower))):
            self._last_state += 1
            symbols = f"{_symbol(upper, position)}\t{_symbol(lower, position)}"
            cost = f"\t{weight:.9g}" if position == 0 else ""
            self._transitions.append(f"{state}\t{self._last_state}\t{symbols}{cost}")
            state = self._last_state
        self._transitions.append(f"{state}")


def _symbol(symbols: Sequence[str], position: int) -> str:
    """Return a symbol as HFST writes it, which has names for a space and for no symbol."""
    if position >= len(symbols):
        return "@0@"
    return "@_SPACE_@" if symbols[position] == SPACE else symbols[position]
