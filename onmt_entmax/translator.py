"""Translate lines of text with one model or a token-level ensemble."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any, NoReturn

import torch

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.language_symbols import LanguageSymbols
from onmt_entmax.ensembles import (
    TranslationError,
    loaded_models,
    make_stepper,
    refuse_incompatible,
)
from onmt_entmax.line_answers import LineAnswers
from onmt_entmax.line_memory import LineMemory
from onmt_entmax.line_reader import Line, LineReader, LineRequest, line_requests
from onmt_entmax.line_search import LineSearch
from onmt_entmax.model import device_of
from onmt_entmax.options.recorded import reader_of
from onmt_entmax.options.target_symbols import language_symbols
from onmt_entmax.parallel.windows import Windows
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.mbr import decide_record
from onmt_entmax.search import (
    ConstraintCompiler,
    LineConstraints,
    SearchResult,
    SearchTask,
    Stepper,
)

_ALL = Windows()


class Translator:
    """Translates lines with one model or a token-level ensemble.

    Texts read from left to right, also if the models write from right to left. Several threads may
    use one translator. It cannot be copied or pickled: another process makes its own, or is forked.

    Args:
        models: loaded model folders whose vocabularies hold the same tokens, in any order.
        task: what to search for, and how.
        transforms: names of OpenNMT-py's transforms for the input, undone on the output; None: the
            subword transforms of the first model's training.
        transform_options: options of the transforms; the first model's training options fill in the
            rest.
        attention: whether answers count the attended source positions.
        unknown: target words for source words, to replace `<unk>` in texts, see `replace_unknown`;
            None: it stays. Certificates are about token sequences and do not change.
        align: whether answers have the alignments of their hypotheses.
        stepper: the stepper of another translator with the same models and options, to share its
            memory; None: a new one.
        symbols: the symbols that outputs of each language may have; None: as the task says.

    Attributes:
        folders: the model folders that were loaded.
        task: what is searched for, and how.
        vocabularies: the vocabularies of the first model, whose token ids all use.
        device: where the models compute.
        memory: the memory that the device has for lines.
        reader: turns text into tokens and ids.
        stepper: the stepper of the models.
        dense_attention: whether a source position always has positive weight.

    Raises:
        TranslationError: if the vocabularies hold different tokens, no model has the attention that
            `unknown` needs, or some models write from left to right and others from right to left.
        SearchError: if a token that may repeat is not in the target vocabulary.
    """

    def __init__(
        self,
        models: Sequence[LoadedModel],
        task: SearchTask,
        transforms: Sequence[str] | None = None,
        transform_options: Namespace | None = None,
        attention: bool = False,
        unknown: Mapping[str, str] | None = None,
        align: bool = False,
        stepper: Stepper | None = None,
        symbols: LanguageSymbols | None = None,
    ) -> None:
        if not models:
            raise TranslationError("no model is named")
        refuse_incompatible(models)
        if unknown is not None:
            _check_attention("replace_unk", task, models)
        if align:
            _check_attention("report_align", task, models)
        first = models[0]
        self.folders = [loaded.folder for loaded in models]
        self.vocabularies = first.vocabularies
        self.device = device_of(first.model)
        self.task = task
        self.dense_attention = any(loaded.config.source_attention_alpha == 1 for loaded in models)
        self.memory = LineMemory([loaded.config for loaded in models], self.device)
        config = task.with_ids(self.vocabularies.target)
        if symbols is None:
            symbols = language_symbols(models, task.target_symbols)
        self.reader = reader_of(first, transforms, transform_options, symbols)
        if stepper is None:
            reads_attention = task.config.penalties.needs_attention or unknown is not None or align
            stepper = _stepper_of(models, task, attention=attention or reads_attention)
        self.stepper = stepper
        # A line is read, searched and answered.
        self._line_reader = LineReader(
            reader=self.reader,
            compiler=ConstraintCompiler(
                self.vocabularies.target, first.right_to_left, task.regex, first.task.copies
            ),
            max_length=config.max_length,
        )
        self._search = LineSearch(
            stepper=self.stepper,
            verifier=self.stepper.double() if task.verify else None,
            task=task,
            config=config,
            vocabularies=self.vocabularies,
            memory=self.memory,
        )
        self._answers = LineAnswers(
            reader=self.reader,
            config=config,
            dense_attention=self.dense_attention,
            phrase_table=unknown,
            align=align,
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "translators cannot be copied or pickled: make one in each process, or fork"
        )

    @classmethod
    def from_folders(
        cls,
        folders: Path | str | Sequence[Path | str],
        task: SearchTask | None = None,
        device: torch.device | None = None,
        **keywords: Any,
    ) -> Translator:
        """Load model folders (or the best checkpoints of run folders) and make a translator.

        Args:
            folders: one, or several as an ensemble.
            task: what to search for, and how; a beam of 5 if None.
            device: the CPU if None.
            keywords: the other arguments of the class.

        Raises:
            CheckpointError: if a folder cannot be read.
            TranslationError: see the class.
        """
        models = loaded_models(folders, device)
        return cls(models, task or SearchTask(), **keywords)

    def answers(
        self,
        lines: Iterable[str],
        batch_size: int = 64,
        prefixes: Iterable[str] | None = None,
        windows: Windows = _ALL,
        constraints: Iterable[LineConstraints] | None = None,
    ) -> Iterator[Answer]:
        """Translate lines; blank lines yield answers without a result.

        Args:
            lines: the sources; not one string.
            batch_size: sentences searched together.
            prefixes: for each line the text that its output must start with.
            windows: which lines to translate, and how many to read and sort by length at a time.
            constraints: for each line what its output must contain, or must not.

        Yields:
            One answer for each line, in order: its `level` says what is proven, and each of its
            `hypotheses` has `text` and `hypothesis.prob`.

        Raises:
            TooLargeError: if a line is longer than the memory or a Transformer takes.
            TranslationError: if a transform removes all of a line, a prefix is longer than
                `max_length` or has a token that no output has, or constraints need too large an
                automaton.
            ValueError: if there are not as many prefixes, or constraints, as lines, or batch_size
                is below 1.
            TypeError: if a line is not a str.
        """
        if isinstance(lines, (str, bytes)):
            raise TypeError(
                f"lines must be several strings, not one {type(lines).__name__}: give a list"
            )
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if constraints is not None and self.task.sampling is not None:
            raise TranslationError("constraints go with a search, not with sampling")
        numbered = enumerate(line_requests(lines, prefixes, constraints))
        for index in count():
            window = list(islice(numbered, windows.size))
            if not window:
                return
            if windows.has(index):
                yield from self._answer_window(window, batch_size)

    def _answer_window(
        self, window: Sequence[tuple[int, LineRequest]], batch_size: int
    ) -> Iterator[Answer]:
        """Yield the answers of lines that are sorted and searched together, in the lines' order.

        Args:
            window: number and request of each line.
            batch_size: sentences searched together.
        """
        lines: list[Line] = []
        answers: list[Answer] = []
        for number, request in window:
            line = self._line_reader.read(number, request)
            if line is not None:
                lines.append(line)
            else:
                samples = None if self.task.sampling is None else ()
                answers.append(Answer(number, request.text, samples=samples))
        # A certificate is about the model in its own precision, not in the caller's autocast.
        with torch.autocast(self.device.type, enabled=False):
            if self.task.sampling is not None:
                for line, drawn in self._search.samples(self.task.sampling, lines, batch_size):
                    answers.append(self._answers.of_samples(line, drawn))
            else:
                for line, result in self._search.results(lines, batch_size):
                    answers.append(self._answer(line, result))
        yield from sorted(answers, key=lambda answer: answer.id)

    def _answer(self, line: Line, result: SearchResult) -> Answer:
        """Return the answer of a line that was searched."""
        verification = self._search.verification(line, result)
        answer = self._answers.of_search(line, result, verification)
        if self.task.mbr is None:
            return answer
        return replace(answer, mbr=decide_record(self.task.mbr, answer_record(answer)))


def _stepper_of(models: Sequence[LoadedModel], task: SearchTask, *, attention: bool) -> Stepper:
    """Return the stepper of models for a task.

    Args:
        models: the models.
        task: the task, which sets the temperature and the type of products.
        attention: whether steps return attention.
    """
    return make_stepper(
        models,
        attention=attention,
        temperature=1.0 if task.sampling is None else task.sampling.temp,
        dtype=torch.bfloat16 if task.matmul_dtype == "bfloat16" else None,
    )


def _check_attention(option: str, task: SearchTask, models: Sequence[LoadedModel]) -> None:
    """Check that hypotheses have the attention that an option reads.

    Raises:
        TranslationError: if outputs are drawn at random, or no model has attention.
    """
    if task.sampling:
        raise TranslationError(f"{option} goes with a search, not with sampling")
    if all(model.config.global_attention == "none" for model in models):
        raise TranslationError(f"{option} needs a model with attention")
