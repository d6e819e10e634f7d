"""The formats of word lists: for spelling checkers, for keyboards, and as an automaton.

`paradigm --format` chooses one by its name in `WORD_LISTS`. `WordList` collects the forms; each
subclass says which of them its format can hold (`is_word`) and what its files contain. The files
also say whether the list is complete, except that of the automaton, which can have no comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from onmt_entmax.errors import printable
from onmt_entmax.paradigm.automaton import Automaton
from onmt_entmax.paradigm.words import WordList, file_text

_COLUMN_OR_LINE_END = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]")
# Keyman ranks words by whole numbers, such as counts in a corpus. A weight is an expected number of
# cells, often below 1, and is multiplied by this.
_KEYMAN_SCALE = 1000


class HunspellDictionary(WordList):
    """A dictionary of whole forms for Hunspell, without rules for affixes.

    Hunspell can only check single words, so a third file has the other forms.
    """

    program = "Hunspell"
    place_of_others = "are in .phrases.txt"

    def is_word(self, form: str) -> bool:
        """Return whether a form is a single word, without spaces before or after it."""
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
            output.with_name(f"{output.name}.{ending}"): file_text(lines)
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
        """Return whether a form fits a column, and does not begin a comment."""
        return bool(form) and not form.startswith("#") and not _COLUMN_OR_LINE_END.search(form)

    def holds_lemma(self, lemma: str) -> bool:
        """Return whether a lemma fits a column."""
        return not _COLUMN_OR_LINE_END.search(lemma)

    def files(self, output: Path) -> dict[Path, str]:
        """Return the only file."""
        rows = [
            f"{word}\t{max(round(_KEYMAN_SCALE * weight), 1)}\t{printable(self.lemmas[word])}"
            for word, weight in sorted(self.weights.items())
            if self.is_word(word)
        ]
        return {output: file_text([*rows, f"# {self.completeness()}"])}


WORD_LISTS: dict[str, type[WordList]] = {
    "hunspell": HunspellDictionary,
    "keyman": KeymanList,
    "att": Automaton,
}
