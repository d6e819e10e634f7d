"""Describe the form of the page of `onmt-entmax serve`: its fields, and an example query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.inventory import Inventory
from onmt_entmax.page_example import example_query
from onmt_entmax.page_queries import LONGEST, LONGEST_SOURCE
from onmt_entmax.paradigm import parts_of_speech
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.marks import is_language, is_tag
from onmt_entmax.strings.task import StringTask
from onmt_entmax.strings.units import STRUCTURAL, UNKNOWN

# What the page calls a source, by its kind of units.
_LABELS = {"characters": "Word", "symbols": "Symbols", "text": "Sentence"}
_SYMBOLS_SHOWN = 3  # symbols of the vocabulary in the example of a source


@dataclass(frozen=True)
class PageDescription:
    """The fields of the page's form, as the models need them.

    Attributes:
        task: the task of the models.
        languages: the languages that all models know.
        tags: the tags that all models know.
        sources: source vocabularies of the models.
        inventory: the inventory of models of inflection; None for others.
        cells: the cells that the model folder records, by language; none for other tasks.
    """

    task: StringTask
    languages: Sequence[str]
    tags: Sequence[str]
    sources: Sequence[Vocabulary]
    inventory: Inventory | None
    cells: Cells

    def to_dict(self) -> dict[str, Any]:
        """Return the description as the page reads it."""
        task, cells = self.task, self.cells
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
        """Return the hint in the empty field of the source; for symbols, with an example."""
        unit = self.task.source
        if unit.kind == "characters":
            return "type a word"
        if unit.kind == "text":
            return "type a sentence"
        special = {UNKNOWN, *STRUCTURAL, *PLACEHOLDERS}
        symbols = [
            unit.decode([token])
            for token in self.sources[0].tokens
            if token not in special and not is_language(token) and not is_tag(token)
        ]
        between = "spaces" if unit.separator == " " else repr(unit.separator)
        return f"symbols between {between}, such as {unit.join(symbols[:_SYMBOLS_SHOWN])}"

    def _example(self) -> dict[str, str]:
        """Return a query to begin with, as the page sends one; empty if models read no language."""
        if not self.task.languages:
            return {}
        query = example_query(
            self.task,
            languages=self.languages,
            sources=self.sources,
            inventory=self.inventory,
            cells=self.cells,
        )
        fields = {"language": query.language, "source": query.source}
        if query.tags:
            fields["tags"] = self.task.tag_separator.join(query.tags)
        return fields
