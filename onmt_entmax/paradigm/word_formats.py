"""The formats of word lists: for spelling checkers, for keyboards, and as an automaton.

`paradigm --format` chooses one by its name in `WORD_LISTS`. `WordList` collects the forms; each
subclass says which of them its format can hold (`is_word`) and what its files contain. The files
also say whether the list is complete, except those of the automaton, which can have no comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from onmt_entmax.errors import printable
from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.words import WordList
from onmt_entmax.strings.marks import encode_tag
from onmt_entmax.strings.units import SPACE, encode_word

_COLUMN_OR_LINE_END = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]")
_KEYMAN_SCALE = 1000  # Keyman wants counts, as in a corpus; `weights` are expected numbers of cells


class HunspellDictionary(WordList):
    """A dictionary of whole forms for Hunspell, without rules for affixes.

    Hunspell knows single words only, so other forms are listed in a third file.
    """

    program = "Hunspell"
    place_of_others = "are in .phrases.txt"

    def is_word(self, form: str) -> bool:
        """Tell whether a form is a single word, without spaces before or after it."""
        return form.split() == [form]

    def left_out(self) -> list[str]:
        """Return nothing: the third file has the other forms."""
        return []

    def files(self, output: Path) -> dict[Path, str]:
        """Return OUTPUT.dic, OUTPUT.aff and OUTPUT.phrases.txt."""
        phrases = self.others()
        words = sorted(self.weights.keys() - {*phrases})
        contents = {
            # The number of words comes first. A slash would begin flags.
            "dic": [str(len(words)), *(word.replace("/", "\\/") for word in words)],
            "aff": self._affixes(words),
            "phrases.txt": [printable(phrase) for phrase in phrases],
        }
        return {
            output.with_name(f"{output.name}.{ending}"): _text(lines)
            for ending, lines in contents.items()
        }

    def _affixes(self, words: Iterable[str]) -> list[str]:
        """Return the lines of the `.aff` file: settings of the dictionary, and no affixes.

        Hunspell splits a text at every character that is no letter, unless WORDCHARS lists it.
        """
        lines = [f"# {self.completeness()}", "SET UTF-8"]
        characters = {character for word in words for character in word}
        others = sorted(character for character in characters if not character.isalpha())
        if others:
            lines.append(f"WORDCHARS {''.join(others)}")
        return lines


class KeymanList(WordList):
    """Lines of word, weight and lemma for Keyman."""

    program = "Keyman"

    def is_word(self, form: str) -> bool:
        """Tell whether a form fits a column, and does not begin a comment."""
        return bool(form) and not form.startswith("#") and not _COLUMN_OR_LINE_END.search(form)

    def holds_lemma(self, lemma: str) -> bool:
        """Tell whether a lemma fits a column."""
        return not _COLUMN_OR_LINE_END.search(lemma)

    def files(self, output: Path) -> dict[Path, str]:
        """Return the only file."""
        rows = [
            f"{word}\t{max(round(_KEYMAN_SCALE * weight), 1)}\t{printable(self.lemmas[word])}"
            for word, weight in sorted(self.weights.items())
            if self.is_word(word)
        ]
        return {output: _text([*rows, f"# {self.completeness()}"])}


class Automaton(WordList):
    """An automaton from lemma and tags to form in AT&T's format, with a path for each form.

    State 0 is the first. A path has its weight, -log(probability), on its first transition.
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
        return {output: _text(self._transitions)}

    def _add_path(self, upper: Sequence[str], lower: Sequence[str], weight: float) -> None:
        """Add a path from the first state to an end.

        Args:
            upper: symbols of the query.
            lower: symbols of the form.
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


def _text(lines: Iterable[str]) -> str:
    """Return the content of a file with these lines."""
    return "".join(f"{line}\n" for line in lines)


WORD_LISTS: dict[str, type[WordList]] = {
    "hunspell": HunspellDictionary,
    "keyman": KeymanList,
    "att": Automaton,
}
