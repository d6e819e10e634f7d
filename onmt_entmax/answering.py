"""Answer the queries of the page of `onmt-entmax serve`: outputs, proofs, pictures, paradigms.

| query | models | what answers it | pictures |
|---|---|---|---|
| a source | one, or several of the same vocabularies and direction | `Translator` | yes |
| a source | others | `Transducer`, which averages their outputs | no |
| a lemma and a part of speech | of inflection | `Inflector`, for all cells of the paradigm | no |

`page_description` describes the models for the page, before the first query. `page_records` makes
records of answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import LoadedModel, read_cells
from onmt_entmax.ensembles import TranslationError, loaded_models
from onmt_entmax.errors import UserError
from onmt_entmax.inflector import Inflection, Inflector, Question
from onmt_entmax.inventory import Inventory
from onmt_entmax.page_description import LONGEST, LONGEST_SOURCE, PageDescription
from onmt_entmax.page_records import PageRecords
from onmt_entmax.paradigm import as_record, cells_of
from onmt_entmax.pictures import lattice_of, picture
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.task import Query
from onmt_entmax.transducer import Transducer
from onmt_entmax.translator import Translator
from onmt_entmax.writing_warnings import INFLECTION_NOUNS, Nouns

_SOURCE_NAMES = ("source", "lemma", "sentence")  # the last two are those of release 1.0
# Cells of a paradigm that are searched in one batch; other queries are answered between batches.
_TOGETHER = 64
# Live prefixes of a search for the forms of a cell; what they do not find, the page says.
_PARADIGM_BEAM = 10


class ClientGoneError(Exception):
    """The client has closed its connection, so nobody reads the answer."""


def never_gone() -> bool:
    """Return False, as if no client ever closed its connection: for servers that cannot tell."""
    return False


@dataclass(frozen=True)
class _InflectionModels:
    """What there is only for models of inflection."""

    inventory: Inventory
    inflector: Inflector  # lists all forms that its beam finds
    cells: Cells  # that the model folder records, by language


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
        self._inflection: _InflectionModels | None = None
        if self.task.languages and self.task.has_tags:
            self._inflection = _InflectionModels(
                inventory=Inventory.of(self._sources),
                inflector=Inflector(models, n_best=0, beam_size=_PARADIGM_BEAM, budget=0),
                cells=read_cells(models[0].folder),
            )
        self._records = PageRecords(
            task=self.task,
            sources=self._sources,
            tags=self._transducer.tags,
            nouns=Nouns() if self._inflection is None else INFLECTION_NOUNS,
            listed=config.n_best,
        )

    # --- what the page asks for ---

    def description(self) -> dict[str, Any]:
        """Return what the page needs to know of the models, see `PageDescription`."""
        inflection = self._inflection
        return PageDescription(
            task=self.task,
            languages=self._transducer.languages,
            tags=self._transducer.tags,
            sources=self._sources,
            inventory=None if inflection is None else inflection.inventory,
            cells={} if inflection is None else inflection.cells,
        ).to_dict()

    # --- answers ---

    def answer(self, query: object, client_gone: Callable[[], bool] = never_gone) -> dict[str, Any]:
        """Return `record`, `drawing` and `tags` of a query; or the paradigm, if it has `pos`.

        The record is that of a report, with texts as people write them; the paradigm is as
        `onmt-entmax paradigm` has it.

        Args:
            query: `source`, and what the task has of `language` and `tags` or `pos`, as the page
                sends them.
            client_gone: returns whether the client has closed its connection.

        Raises:
            UserError: it is not such a query, or cannot be answered.
            ClientGoneError: the client has gone.
        """
        if not isinstance(query, Mapping):
            raise UserError("a query is an object")
        if self._inflection is not None and query.get("pos"):
            return self._paradigm(query, self._inflection, client_gone)
        checked = self._checked(query)
        with self._turn(client_gone):
            return {**self._answer(checked), "tags": checked.tags}

    def _checked(self, query: Mapping[str, Any]) -> Query:
        """Return a query of the page as the models name its parts.

        Raises:
            UserError: a part is too long, or the models cannot answer it.
        """
        source = self._source(query)
        language = _text(query, "language") if self.task.languages else ""
        tags = self.task.tags_of(_text(query, "tags")) if self.task.has_tags else ()
        if self._inflection is not None:
            question = self._inflection.inventory.checked(Question(language, source, tags))
            return Query(question.lemma, question.tags, question.language)
        return self._transducer.checked(Query(source, tags, language))

    def _source(self, query: Mapping[str, Any]) -> str:
        """Return the source of a query of the page."""
        name = next((name for name in _SOURCE_NAMES if name in query), "source")
        # Keyboards of phones leave a space behind a word.
        return _text(query, name, LONGEST_SOURCE[self.task.source.kind]).strip()

    @contextmanager
    def _turn(self, client_gone: Callable[[], bool]) -> Iterator[None]:
        """Wait until no other query is answered.

        Raises:
            ClientGoneError: the client has gone meanwhile.
        """
        with self._lock:
            if client_gone():
                raise ClientGoneError
            yield

    def _paradigm(
        self,
        query: Mapping[str, Any],
        inflection: _InflectionModels,
        client_gone: Callable[[], bool],
    ) -> dict[str, Any]:
        """Return the record of a paradigm; other queries may be answered between its cells."""
        language = known_as(_text(query, "language"), inflection.inventory.languages)
        lemma = self._source(query)
        cells = cells_of(inflection.cells, language, _text(query, "pos"))
        questions = [Question(language, lemma, tags) for tags in cells]
        inflection.inventory.checked(questions[0])  # before waiting for a turn
        answers: list[Inflection] = []
        for start in range(0, len(questions), _TOGETHER):
            with self._turn(client_gone):
                together = questions[start : start + _TOGETHER]
                answers += inflection.inflector.answers(together, _TOGETHER)
        return as_record(answers)

    def _answer(self, query: Query) -> dict[str, Any]:
        """Return the record of a query, and its drawing."""
        line = " ".join(self.task.encode_source(query))
        if self._translator is None:
            (prediction,) = self._transducer.predictions([query])
            return {"record": self._records.of_prediction(line, prediction), "drawing": None}
        try:
            (answer,) = self._translator.answers([line])
        except UserError as error:
            raise UserError(str(error).removeprefix("line 1: ")) from None
        drawing = _drawing(self._translator, line, answer)
        return {"record": self._records.of_answer(query, answer), "drawing": drawing}


def _translator(
    models: Sequence[LoadedModel], task: SearchTask, transforms: Sequence[str] | None
) -> Translator | None:
    """Return the translator of models, or None if they cannot write one output together.

    Raises:
        TranslationError: what is wrong is not that there are several models.
    """
    try:
        return Translator(models, task, transforms, attention=True)
    except TranslationError:
        if len(models) == 1 or transforms is not None:
            raise
        return None


def _drawing(translator: Translator, line: str, answer: Answer) -> dict[str, Any] | None:
    """Return the data of the pictures of an answer; None if it has no output."""
    outputs = [decoded.hypothesis.tokens for decoded in answer.hypotheses]
    if not outputs:
        return None
    tokens, _ = translator.reader.preprocess(line)
    source = translator.reader.encode(tokens)
    return picture(translator, source, lattice_of(translator, source, outputs))


def _text(query: Mapping[str, Any], name: str, longest: int | None = None) -> str:
    """Return a field of a query; an empty text if it is not there.

    Args:
        query: as the page sends it.
        name: of the field.
        longest: most characters; None: those of `LONGEST`.

    Raises:
        UserError: it is too long or no text.
    """
    text = query.get(name, "")
    most = LONGEST[name] if longest is None else longest
    if not isinstance(text, str) or any(map(_is_surrogate, text)):
        raise UserError(f"{name}: expected a text")
    if len(text) > most:
        raise UserError(f"{name}: longer than {most:,} characters")
    return text


def _is_surrogate(character: str) -> bool:
    """Whether a character is half of one, which JSON may have and UTF-8 has not."""
    return "\ud800" <= character <= "\udfff"
