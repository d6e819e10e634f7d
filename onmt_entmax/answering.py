"""Answer the queries of the page of `onmt-entmax serve`: outputs, proofs, pictures and paradigms.

| query | models | answered by | pictures |
|---|---|---|---|
| a source | one, or several of the same vocabularies and direction | `Translator` | yes |
| a source | several with other vocabularies or directions | `Transducer`, which averages | no |
| a lemma and a part of speech | of inflection | `Inflector`, for all cells of the paradigm | no |

`page_description` describes the models for the page's form, `page_queries` reads the queries,
`page_paradigms` searches paradigms, and `page_records` makes the records of other answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.ensembles import TranslationError, loaded_models
from onmt_entmax.errors import UserError
from onmt_entmax.inflection import Inflection
from onmt_entmax.page_description import PageDescription
from onmt_entmax.page_paradigms import PageParadigms
from onmt_entmax.page_queries import PageQueries
from onmt_entmax.page_records import PageRecords
from onmt_entmax.paradigm import as_record
from onmt_entmax.pictures import answer_drawing
from onmt_entmax.search import SearchTask
from onmt_entmax.strings.task import Query
from onmt_entmax.transducer import Transducer
from onmt_entmax.translator import Translator
from onmt_entmax.writing_warnings import INFLECTION_NOUNS, Nouns


class ClientGoneError(Exception):
    """The client has closed its connection, so nobody reads the answer."""


def never_gone() -> bool:
    """Return False, as if no client ever closed its connection: for servers that cannot tell."""
    return False


class Answering:
    """Answers the queries of the page with one model or an ensemble, one at a time.

    Models of the same vocabularies and direction are searched together, and have pictures. The
    outputs of others are averaged, see `Transducer`.

    Args:
        folders: run or model folders.
        task: what to search for, and how.
        transforms: OpenNMT-py's transforms of a source; None: the subword transforms of training.

    Raises:
        UserError: a folder cannot be read, the models have different tasks, or a transform cannot
            be made.
    """

    def __init__(
        self,
        folders: Path | Sequence[Path],
        task: SearchTask,
        transforms: Sequence[str] | None = None,
    ) -> None:
        models = loaded_models(folders)
        config = task.config
        self._transducer = Transducer(
            models,
            n_best=0,  # averaged outputs are counted before the best are shown
            beam_size=config.beam_size,
            max_length=config.max_length,
            budget=task.budget.expansions if task.method == "exact" else 0,
        )
        self.task = self._transducer.task
        self._sources = [model.vocabularies.source for model in models]
        self._translator = _translator(models, task, transforms)
        self._lock = threading.Lock()
        has_inflection = self.task.languages and self.task.has_tags
        self._paradigms = PageParadigms.of(models) if has_inflection else None
        self._inventory = None if self._paradigms is None else self._paradigms.inventory
        self._queries = PageQueries(
            self.task,
            self._transducer.checked if self._inventory is None else self._inventory.checked_query,
        )
        self._records = PageRecords(
            task=self.task,
            sources=self._sources,
            tags=self._transducer.tags,
            nouns=INFLECTION_NOUNS if has_inflection else Nouns(),
            cells={} if self._paradigms is None else self._paradigms.cells,
            listed=config.n_best,
        )

    def description(self) -> dict[str, Any]:
        """Return what the page shows before the first query, see `PageDescription`."""
        return PageDescription(
            task=self.task,
            languages=self._transducer.languages,
            tags=self._transducer.tags,
            sources=self._sources,
            inventory=self._inventory,
            cells={} if self._paradigms is None else self._paradigms.cells,
        ).to_dict()

    def answer(self, query: object, client_gone: Callable[[], bool] = never_gone) -> dict[str, Any]:
        """Return `record`, `drawing` and `tags` of a query; or the paradigm, if it has `pos`.

        The record is that of a report, with texts as people write them; the paradigm is as
        `onmt-entmax paradigm` has it.

        Args:
            query: as the page sends it, see `page_queries`.
            client_gone: returns whether the client has closed its connection.

        Raises:
            UserError: if it is not such a query, or cannot be answered.
            ClientGoneError: if the client has closed its connection.
        """
        if not isinstance(query, Mapping):
            raise UserError("a query is an object")
        if self._paradigms is not None and query.get("pos"):
            return self._paradigm(query, self._paradigms, client_gone)
        checked = self._queries.query(query)
        with self._turn(client_gone):
            return {**self._record_and_drawing(checked), "tags": checked.tags}

    @contextmanager
    def _turn(self, client_gone: Callable[[], bool]) -> Iterator[None]:
        """Wait until no other query is being answered.

        Raises:
            ClientGoneError: if the client has closed its connection meanwhile.
        """
        with self._lock:
            if client_gone():
                raise ClientGoneError
            yield

    def _paradigm(
        self,
        query: Mapping[str, Any],
        paradigms: PageParadigms,
        client_gone: Callable[[], bool],
    ) -> dict[str, Any]:
        """Return the record of a paradigm; other queries may be answered between its batches."""
        # Wrong queries are refused here, before they wait for a turn.
        batches = paradigms.batches(self._queries.paradigm(query))
        forms: list[Inflection] = []
        for batch in batches:
            with self._turn(client_gone):
                forms += paradigms.forms(batch)
        return as_record(forms)

    def _record_and_drawing(self, query: Query) -> dict[str, Any]:
        """Return the record of a query's answer, and the data of its pictures if it has some."""
        line = " ".join(self.task.encode_source(query))
        if self._translator is None:
            (prediction,) = self._transducer.predictions([query])
            return {"record": self._records.of_prediction(line, prediction), "drawing": None}
        try:
            (answer,) = self._translator.answers([line])
        except UserError as error:
            raise UserError(str(error).removeprefix("line 1: ")) from None
        return {
            "record": self._records.of_answer(query, answer),
            "drawing": answer_drawing(self._translator, line, answer),
        }


def _translator(
    models: Sequence[LoadedModel], task: SearchTask, transforms: Sequence[str] | None
) -> Translator | None:
    """Return the translator of models, or None if several cannot write one output together.

    Raises:
        TranslationError: if the models cannot translate for another reason.
    """
    try:
        return Translator(models, task, transforms, attention=True)
    except TranslationError:
        if len(models) == 1 or transforms is not None:
            raise
        return None
