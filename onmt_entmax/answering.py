"""Answer the queries of the page of `onmt-entmax serve`: outputs, proofs, pictures, paradigms.

The task of the models decides what a query has, and what the page shows of its outputs;
`page_description` says what the page shows before.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import load, read_cells
from onmt_entmax.errors import UserError
from onmt_entmax.files import finite
from onmt_entmax.inflector import Inflection, Inflector, Inventory, Question
from onmt_entmax.page_description import LONGEST, LONGEST_SOURCE, PageDescription
from onmt_entmax.paradigm import as_record, cells_of
from onmt_entmax.pictures import lattice_of, picture
from onmt_entmax.prediction import Prediction
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask
from onmt_entmax.source_warnings import described_token, letter_warnings, tag_hint
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.task import Query
from onmt_entmax.transducer import Transducer
from onmt_entmax.translator import TranslationError, Translator, as_list

_SOURCE_NAMES = ("source", "lemma", "sentence")  # the last two are those of release 1.0
# Cells of a paradigm that are searched in one batch; between batches, others may ask.
_TOGETHER = 64

_APART = "These models are searched apart, so their outputs have no common pictures."


class LeftError(Exception):
    """The client has closed its connection, so nobody reads the answer."""


def stays() -> bool:
    """Whether a client has left that nobody can ask about: never."""
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
        models = [load(folder) for folder in as_list(folders)]
        config, steps = task.config, task.budget.expansions if task.method == "exact" else 0
        # It lists all that it finds, since averaged outputs are counted before the best are shown.
        self._transducer = Transducer(models, 0, config.beam_size, config.max_length, budget=steps)
        self.task = self._transducer.task
        self._sources = [model.vocabularies.source for model in models]
        self._listed = config.n_best
        self._translator: Translator | None = None
        try:
            self._translator = Translator(models, task, transforms, attention=True)
        except TranslationError:
            if len(models) == 1 or transforms is not None:
                raise
        self._lock = threading.Lock()
        self._inflects = self.task.languages and self.task.has_tags
        self._cells: Cells = {}
        if self._inflects:
            self._inventory = Inventory.of(self._sources)
            self._inflector = Inflector(models, 0, 10, budget=0)
            self._cells = read_cells(models[0].folder)

    # --- what the page asks for ---

    def description(self) -> dict[str, Any]:
        """Return what the page needs to know of the models, see `PageDescription`."""
        return PageDescription(
            task=self.task,
            languages=self._transducer.languages,
            tags=self._transducer.tags,
            sources=self._sources,
            inventory=self._inventory if self._inflects else None,
            cells=self._cells,
        ).to_dict()

    # --- answers ---

    def answer(self, query: object, left: Callable[[], bool] = stays) -> dict[str, Any]:
        """Return the record of a query, its drawing and its tags.

        The record is that of a report, with texts as people write them.

        Of a query with a part of speech, return the paradigm, as `onmt-entmax paradigm` has it.

        Args:
            query: `source`, and what the task has of `language` and `tags` or `pos`, as the page
                sends them.
            left: whether the client has gone.

        Raises:
            UserError: it is not such a query, or cannot be answered.
            LeftError: the client has gone.
        """
        if not isinstance(query, Mapping):
            raise UserError("a query is an object")
        if self._inflects and query.get("pos"):
            return self._paradigm(query, left)
        checked = self._checked(query)
        with self._turn(left):
            return {**self._answer(checked), "tags": checked.tags}

    def _checked(self, query: Mapping[str, Any]) -> Query:
        """Return a query of the page as the models name its parts.

        Raises:
            UserError: a part is too long, or the models cannot answer it.
        """
        source = self._source(query)
        language = _text(query, "language") if self.task.languages else ""
        tags = self.task.tags_of(_text(query, "tags")) if self.task.has_tags else ()
        if self._inflects:
            question = self._inventory.checked(Question(language, source, tags))
            return Query(question.lemma, question.tags, question.language)
        return self._transducer.checked(Query(source, tags, language))

    def _source(self, query: Mapping[str, Any]) -> str:
        """Return the source of a query of the page."""
        name = next((name for name in _SOURCE_NAMES if name in query), "source")
        # Keyboards of phones leave a space behind a word.
        return _text(query, name, LONGEST_SOURCE[self.task.source.kind]).strip()

    @contextmanager
    def _turn(self, left: Callable[[], bool]) -> Iterator[None]:
        """Wait until no other query is answered.

        Raises:
            LeftError: the client has gone meanwhile.
        """
        with self._lock:
            if left():
                raise LeftError
            yield

    def _paradigm(self, query: Mapping[str, Any], left: Callable[[], bool]) -> dict[str, Any]:
        """Return the record of a paradigm; other queries may be answered between its cells."""
        language = known_as(_text(query, "language"), self._inventory.languages)
        lemma = self._source(query)
        cells = cells_of(self._cells, language, _text(query, "pos"))
        questions = [Question(language, lemma, tags) for tags in cells]
        self._inventory.checked(questions[0])
        answers: list[Inflection] = []
        for start in range(0, len(questions), _TOGETHER):
            with self._turn(left):
                together = questions[start : start + _TOGETHER]
                answers += self._inflector.answers(together, _TOGETHER)
        return as_record(answers)

    def _answer(self, query: Query) -> dict[str, Any]:
        """Return the record of a query, and its drawing."""
        line = " ".join(self.task.encode_source(query))
        if self._translator is None:
            (prediction,) = self._transducer.predictions([query])
            return {"record": self._averaged(line, prediction), "drawing": None}
        try:
            (answer,) = self._translator.answers([line])
        except UserError as error:
            raise UserError(str(error).removeprefix("line 1: ")) from None
        reader = self._translator.reader
        source = reader.encode(reader.preprocess(line)[0])
        outputs = [decoded.hypothesis.tokens for decoded in answer.hypotheses]
        drawing = None
        if outputs:
            lattice = lattice_of(self._translator, source, outputs)
            drawing = picture(self._translator, source, lattice)
        return {"record": self._record(query, answer), "drawing": drawing}

    def _record(self, query: Query, answer: Answer) -> dict[str, Any]:
        """Return the record of an answer, its texts and tokens as people write them."""
        task, record = self.task, answer.record()
        if task.source.kind == "text":
            return record
        record["written"] = True
        for hypothesis in record["hypotheses"]:
            hypothesis["text"] = task.target.decode(hypothesis["text"].split())
        if "unfinished" in record:
            record["unfinished"] = task.target.decode(record["unfinished"].split())
        if answer.copied:
            record["copied"] = dict.fromkeys(answer.copied, 1)
        strange = {"unknown", "unseen", "copied"} & record.keys()
        for name in strange:
            record[name] = {
                described_token(token, task.source) + tag_hint(token, self._transducer.tags): count
                for token, count in record[name].items()
            }
        texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
        nouns = ("lemma", "form") if self._inflects else ("source", "output")
        record["warnings"] = letter_warnings(
            query, texts, self._sources, bool(strange), task, nouns
        )
        return record

    def _averaged(self, line: str, prediction: Prediction) -> dict[str, Any]:
        """Return the record of averaged outputs."""
        certificate, outputs = prediction.certificate, prediction.outputs
        return finite(
            {
                "source": line,
                "written": self.task.source.kind != "text",
                "certificate": certificate.level,
                "bound": certificate.bound,
                "mass": min(certificate.mass, 1.0),  # rounding may exceed 1
                "dropped": certificate.dropped,
                "truncated": certificate.truncated,
                "excluded": min(certificate.excluded, 1.0),
                "finished": len(outputs),
                "hypotheses": [output.to_dict() for output in outputs[: self._listed]],
                "warnings": prediction.warnings,
                "no_pictures": _APART,
            }
        )


def _text(query: Mapping[str, Any], name: str, longest: int = 0) -> str:
    """Return a field of a query; an empty text if it is not there.

    Raises:
        UserError: it is too long or no text.
    """
    text, longest = query.get(name, ""), longest or LONGEST[name]
    if not isinstance(text, str) or any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(f"{name}: expected a text")
    if len(text) > longest:
        raise UserError(f"{name}: longer than {longest:,} characters")
    return text
