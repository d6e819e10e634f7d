"""What the page of `onmt-entmax serve` shows before anyone asks: its fields, and an example."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.inventory import Inventory
from onmt_entmax.paradigm import parts_of_speech
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.marks import LANGUAGE, is_language, is_tag
from onmt_entmax.strings.task import StringTask
from onmt_entmax.strings.units import STRUCTURAL, UNKNOWN

LONGEST = {"language": 100, "tags": 500, "pos": 100}  # characters of a field
LONGEST_SOURCE = {"characters": 80, "symbols": 500, "text": 2000}  # long words have about 60
# Language, word, and the tags of the cell to show; a part of speech alone stands for its most
# frequent cell.
_EXAMPLES = (
    ("turkish", "kitap", "N;ACC;SG"),
    ("english", "draw", "V;V.PTCP;PST"),
    ("german", "Haus", "N;DAT;PL"),
    ("spanish", "preferir", "V"),
    ("french", "dormir", "V"),
    ("italian", "venire", "V"),
    ("portuguese", "dormir", "V"),
    ("dutch", "huis", "N"),
    ("danish", "bog", "N"),
    ("swedish", "bok", "N"),
    ("icelandic", "hestur", "N"),
    ("finnish", "katu", "N"),
    ("hungarian", "ház", "N"),
    ("polish", "dom", "N"),
    ("russian", "книга", "N"),
    ("kazakh", "кітап", "N"),
    ("georgian", "კაცი", "N"),
)
# What the page calls a source, by its kind of units.
_LABELS = {"characters": "Word", "symbols": "Symbols", "text": "Sentence"}
_SYMBOLS_SHOWN = 3  # of the vocabulary, as an example of a source


@dataclass(frozen=True)
class PageDescription:
    """What the page needs to know of models.

    Attributes:
        task: of the models.
        languages: that all models know.
        tags: that all models know.
        sources: source vocabularies of the models.
        inventory: of models of inflection; None for others.
        cells: that the model folder records, by language; none for other tasks.
    """

    task: StringTask
    languages: Sequence[str]
    tags: Sequence[str]
    sources: Sequence[Vocabulary]
    inventory: Inventory | None
    cells: Cells

    def to_dict(self) -> dict[str, Any]:
        """Return the description as the page reads it."""
        task = self.task
        cells = self.cells
        return {
            "source": {
                "label": _LABELS[task.source.kind],
                "placeholder": self._placeholder(),
                "kind": task.source.kind,
            },
            "languages": self.languages if task.languages else None,
            "tags": self.tags if task.has_tags else None,
            "tag_separator": task.tag_separator,
            "needs_tags": self.inventory is not None,
            "untagged": self.inventory.untagged if self.inventory else [],
            "pos": {language: parts_of_speech(cells, language) for language in cells},
            "example": self._example(),
            "longest": {**LONGEST, "source": LONGEST_SOURCE[task.source.kind]},
        }

    def _placeholder(self) -> str:
        """Return what to type as a source; of symbols, an example."""
        unit = self.task.source
        if unit.kind == "characters":
            return "type a word"
        if unit.kind == "text":
            return "type a sentence"
        others = {UNKNOWN, *STRUCTURAL, *PLACEHOLDERS}
        symbols = [
            unit.decode([token])
            for token in self.sources[0].tokens
            if token not in others and not is_language(token) and not is_tag(token)
        ]
        between = "spaces" if unit.separator == " " else repr(unit.separator)
        return f"symbols between {between}, such as {unit.join(symbols[:_SYMBOLS_SHOWN])}"

    def _example(self) -> dict[str, str]:
        """Return a query to begin with, or as much of one as is known.

        The first of these that there is: a word of `_EXAMPLES` with the tags of a cell; a language
        and the tags of one of its cells; a language.
        """
        if not self.task.languages:
            return {}
        for name, word, tags in _EXAMPLES:
            language = known_as(name, self.languages)
            if language not in self.languages or not self._knows_letters(language, word):
                continue
            cell = self._cell(language, tuple(tags.split(";")))
            if cell is not None:
                return self._page_query(language, word, cell)
        for language in self.languages:
            if self.cells.get(language):
                return self._page_query(language, "", next(iter(self.cells[language])))
        return {"language": self.languages[0]}

    def _knows_letters(self, language: str, word: str) -> bool:
        """Tell whether training saw the letters of a word in sources of a language."""
        unit = self.task.source
        if unit.kind != "characters":
            return False
        return all(_has(source, language, unit.encode(word)) for source in self.sources)

    def _page_query(self, language: str, source: str, tags: Sequence[str]) -> dict[str, str]:
        """Return a query as the page has it."""
        query = {"language": language, "source": source}
        if tags:
            query["tags"] = self.task.tag_separator.join(tags)
        return query

    def _cell(self, language: str, tags: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the cell of these tags, else the most frequent of the same part of speech.

        Returns:
            Empty if the models read no tags, or training has none of the language. Where no cells
            of the language are recorded, the tags themselves, if the models know all of them.
            None if the language has no such cell.
        """
        if self.inventory is None or language in self.inventory.untagged:
            return ()
        cells = self.cells.get(language)
        if not cells:
            return tags if {*tags} <= {*self.inventory.tags} else None
        alike = [cell for cell in cells if cell[0] == tags[0]]
        equal = [cell for cell in alike if set(cell) == set(tags)]
        return next(iter([*equal, *alike]), None)


def _has(source: Vocabulary, language: str, letters: Sequence[str]) -> bool:
    """Whether training saw these letters in sources of a language."""
    return {*letters} <= {*source.seen.get(LANGUAGE + language, source.tokens)}
