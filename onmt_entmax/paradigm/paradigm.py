"""All cells of a lemma, as `Inflector.paradigm` returns them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onmt_entmax.files import finite
from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.page import left_out_note, section_table
from onmt_entmax.paradigm.records import as_record
from onmt_entmax.paradigm.sections import sections
from onmt_entmax.paradigm.texts import as_text

# A notebook lacks the page's style, in which a form is green if it is the only possible one.
_STYLE = "<style>table.paradigm td.only { color: #1a7f37; }</style>"


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
        """Return the paradigm without the forms below a probability; `left_out` counts these."""
        return Paradigm(tuple(cell.at_least(prob) for cell in self.cells))

    def __repr__(self) -> str:
        return as_text(self.cells)

    def to_dict(self, n_best: int = 0) -> dict[str, Any]:
        """Return the tables with forms, probabilities and certificates, as values for JSON.

        Args:
            n_best: how many forms of each cell to keep, the most probable ones; 0: all.
        """
        cells = [replace(cell, forms=cell.forms[: n_best or None]) for cell in self.cells]
        return finite(as_record(cells))

    def _repr_html_(self) -> str:
        """Return the tables for a notebook."""
        tables = "".join(map(section_table, sections(self.cells)))
        return _STYLE + tables + left_out_note(self.cells)
