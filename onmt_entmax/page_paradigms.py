"""Paradigms for the page of `onmt-entmax serve`: all forms of a lemma, searched cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onmt_entmax.checkpoint import LoadedModel, read_cells
from onmt_entmax.inflector import Inflection, Inflector, Question
from onmt_entmax.inventory import Inventory
from onmt_entmax.page_queries import ParadigmQuery
from onmt_entmax.paradigm import cells_of
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.languages import known_as

# Cells that are searched together. The page answers other queries between the batches of a large
# paradigm.
_CELLS_TOGETHER = 64
# Beam size of a search for the forms of a cell. Forms that it misses are not enumerated, since that
# takes long: the page says if there may be others.
_BEAM = 10


@dataclass(frozen=True)
class PageParadigms:
    """Searches the cells of paradigms with models of inflection.

    Attributes:
        inventory: the languages and tags that the models know.
        cells: the cells that the first model folder records, by language.
        inflector: lists all forms of a cell that its beam finds.
    """

    inventory: Inventory
    cells: Cells
    inflector: Inflector

    @classmethod
    def of(cls, models: Sequence[LoadedModel]) -> PageParadigms:
        """Return the paradigms of loaded models.

        The cells are those of the first model, as in `Inflector.paradigm`.
        """
        return cls(
            inventory=Inventory.of(model.vocabularies.source for model in models),
            cells=read_cells(models[0].folder),
            inflector=Inflector(models, n_best=0, beam_size=_BEAM, budget=0),
        )

    def batches(self, query: ParadigmQuery) -> list[list[Question]]:
        """Return a question for each cell of a paradigm, in batches that are searched together.

        Raises:
            UserError: the models do not know the language, the part of speech or the lemma.
        """
        language = known_as(query.language, self.inventory.languages)
        cells = cells_of(self.cells, language, query.pos)
        questions = [Question(language, query.lemma, tags) for tags in cells]
        # A wrong lemma or language is refused here, before the first batch is searched. The other
        # questions differ in their tags alone, which are known.
        self.inventory.checked(questions[0])
        return [
            questions[start : start + _CELLS_TOGETHER]
            for start in range(0, len(questions), _CELLS_TOGETHER)
        ]

    def forms(self, batch: Sequence[Question]) -> list[Inflection]:
        """Search a batch of cells; return the forms of each."""
        return list(self.inflector.answers(batch, len(batch)))
