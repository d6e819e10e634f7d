"""Paradigms: the cells of a lemma as tables and records, and word lists of many lemmas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onmt_entmax.files import finite
from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.cells import cells_of, parts_of_speech
from onmt_entmax.paradigm.counts import LeftOut, WarningCounts
from onmt_entmax.paradigm.page import as_html, left_out_note, section_table
from onmt_entmax.paradigm.sections import Section, sections
from onmt_entmax.paradigm.texts import CSV_HEAD, as_csv, as_record, as_text, cell_text
from onmt_entmax.paradigm.word_formats import COLUMN_OR_LINE_END, WORD_LISTS
from onmt_entmax.paradigm.words import WordList

__all__ = [
    "COLUMN_OR_LINE_END",
    "CSV_HEAD",
    "WORD_LISTS",
    "LeftOut",
    "Paradigm",
    "Section",
    "WarningCounts",
    "WordList",
    "as_csv",
    "as_html",
    "as_record",
    "as_text",
    "cell_text",
    "cells_of",
    "parts_of_speech",
    "sections",
]


@dataclass(frozen=True, repr=False)
class Paradigm:
    """All cells of a lemma, each with its forms; a notebook shows it as tables.

    Attributes:
        cells: at least one, of one lemma.
    """

    cells: tuple[Inflection, ...]

    @property
    def complete(self) -> bool:
        """Whether no other form is possible in any cell."""
        return all(cell.complete for cell in self.cells)

    def at_least(self, prob: float) -> Paradigm:
        """Return the paradigm without the forms below a probability, which are counted."""
        return Paradigm(tuple(cell.at_least(prob) for cell in self.cells))

    def __repr__(self) -> str:
        return as_text(self.cells)

    def to_dict(self, n_best: int = 0) -> dict[str, Any]:
        """Return the tables as JSON has them, with forms, probabilities and certificates.

        Args:
            n_best: forms of a cell at most, the most probable ones; 0: all.
        """
        return finite(
            as_record([replace(cell, forms=cell.forms[: n_best or None]) for cell in self.cells])
        )

    def _repr_html_(self) -> str:
        """Return the tables for a notebook."""
        style = "<style>table.paradigm td.only { color: #1a7f37; }</style>"
        tables = "".join(map(section_table, sections(self.cells)))
        return style + tables + left_out_note(self.cells)
