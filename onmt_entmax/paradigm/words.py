"""Word lists of many paradigms, for spelling checkers, keyboards and automata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onmt_entmax.errors import counted, printable
from onmt_entmax.paradigm.counts import Doubts, LeftOut
from onmt_entmax.strings.task import encode_tag
from onmt_entmax.strings.units import SPACE, encode_word

if TYPE_CHECKING:
    from onmt_entmax.inflector import Inflection

DIVIDING = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]")  # columns and lines
# A comment of Keyman's list, nothing, or more than one column or line.
_NO_ENTRY = re.compile(rf"^#|^$|{DIVIDING.pattern}")


class WordList:
    """All forms of many paradigms, and whether anything else is possible.

    Attributes:
        weights: for each form, the expected number of cells that have it.
        lemmas: for each form, the first lemma that has it.
        transitions: lines of the automaton in AT&T's format; state 0 is the first.
        doubts: the warnings of the cells.
    """

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.lemmas: dict[str, str] = {}
        self.transitions: list[str] = []
        self.doubts = Doubts()
        self._last_state = 0
        self._missing = 0  # cells of which not every form was found
        self._least_mass = 1.0  # of the forms of a cell
        self._left_out = LeftOut()

    def add(self, cell: Inflection) -> None:
        """Add the forms of a cell."""
        self.doubts.add(cell)
        self._missing += cell.level not in ("only", "exhaustive")
        self._left_out.add(cell)
        self._least_mass = min(self._least_mass, sum(form.prob for form in cell.forms))
        question = cell.question
        for form in cell.forms:
            self.weights[form.text] = self.weights.get(form.text, 0.0) + form.prob
            self.lemmas.setdefault(form.text, question.lemma)
            query = [*encode_word(question.lemma), *map(encode_tag, question.tags)]
            # Not `-log_prob`, which may be -0.
            self._add_path(query, encode_word(form.text), 0.0 - form.log_prob)

    def _add_path(self, upper: Sequence[str], lower: Sequence[str], weight: float) -> None:
        """Add a path from the first state, with its weight on the first transition."""
        state = 0
        for position in range(max(len(upper), len(lower))):
            self._last_state += 1
            # HFST writes an empty symbol, and a space, so.
            pair = [side[position] if position < len(side) else "@0@" for side in (upper, lower)]
            symbols = "\t".join("@_SPACE_@" if symbol == SPACE else symbol for symbol in pair)
            cost = f"\t{weight:.9g}" if position == 0 else ""
            self.transitions.append(f"{state}\t{self._last_state}\t{symbols}{cost}")
            state = self._last_state
        self.transitions.append(f"{state}")

    def completeness(self, kind: str) -> str:
        """Return the line that says whether the list is complete in a format."""
        cells = counted(self.doubts.cells, "cell")
        reasons = []
        if self._missing:
            reasons.append(f"something is missing in {self._missing:,} of {cells}")
        if self._left_out.forms:
            reasons.append(f"{self._left_out.text()} in {self._left_out.cells:,} of {cells}")
        if self.doubts.doubtful:
            reasons.append(f"there are warnings in {self.doubts.doubtful:,} of {cells}")
        apart = self.apart(kind)
        if apart:
            forms = f"{len(apart):,} of {counted(len(self.weights), 'form')}"
            where = "are in .phrases.txt" if kind == "hunspell" else "are left out"
            reasons.append(f"{forms}, which {kind.capitalize()} cannot read as a word, {where}")
        if not reasons:
            return f"complete: mass {self._least_mass:.6f}"
        reasons.insert(0, f"mass at least {self._least_mass:.6f} in each cell")
        return f"incomplete: {'; '.join(reasons)}"

    def apart(self, kind: str) -> list[str]:
        """Return the forms that a format cannot hold as words; `att` escapes everything."""
        if kind == "hunspell":  # several words, spaces around, or nothing
            return sorted(form for form in self.weights if form.split() != [form])
        if kind == "keyman":  # no comment, no end of a column
            return sorted(form for form in self.weights if _NO_ENTRY.search(form))
        return []

    def texts(self, kind: str, output: Path) -> dict[Path, str]:
        """Return the files of a format, and their content."""
        if kind == "hunspell":
            return self._hunspell(output)
        if kind == "keyman":
            return {output: _text(self._keyman())}
        return {output: _text(self.transitions)}

    def _hunspell(self, output: Path) -> dict[Path, str]:
        """Return a dictionary, its affixes, and the forms that are no words."""
        apart = self.apart("hunspell")
        words = sorted(self.weights.keys() - {*apart})
        # Without WORDCHARS, Hunspell divides words at characters that are no letters.
        others = "".join(sorted({c for word in words for c in word if not c.isalpha()}))
        affixes = [f"# {self.completeness('hunspell')}", "SET UTF-8"]
        if others:
            affixes.append(f"WORDCHARS {others}")
        # A slash would begin flags.
        entries = [str(len(words)), *(word.replace("/", "\\/") for word in words)]
        files: dict[str, Iterable[str]] = {
            "dic": entries,
            "aff": affixes,
            "phrases.txt": map(printable, apart),
        }
        return {
            output.with_name(f"{output.name}.{ending}"): _text(lines)
            for ending, lines in files.items()
        }

    def _keyman(self) -> list[str]:
        """Return the lines of a list: word, weight and lemma."""
        apart = {*self.apart("keyman")}
        rows = [
            f"{word}\t{max(round(1000 * weight), 1)}\t{printable(self.lemmas[word])}"
            for word, weight in sorted(self.weights.items())
            if word not in apart
        ]
        return [*rows, f"# {self.completeness('keyman')}"]


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
