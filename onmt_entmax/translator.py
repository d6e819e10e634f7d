"""Translate lines of text with one model or a token-level ensemble."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice, repeat
from pathlib import Path
from typing import Any, NoReturn

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.batch import Batch, Example, batches_by_length, make_batch
from onmt_entmax.data.reader import LanguageSymbols
from onmt_entmax.ensembles import TranslationError, make_stepper, refuse_unlike
from onmt_entmax.errors import counted
from onmt_entmax.exhaustion import check_free, named_exhaustion
from onmt_entmax.line_answers import Line, LineAnswers
from onmt_entmax.memory import search_bytes
from onmt_entmax.model import device_of
from onmt_entmax.options.recorded import language_symbols, reader_of
from onmt_entmax.parallel.sharding import Windows
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.mbr import decide_record
from onmt_entmax.search import (
    ConstraintCompiler,
    LineConstraints,
    Request,
    Sampling,
    SearchConfig,
    SearchResult,
    SearchTask,
    Stepper,
    Verification,
    exact_search,
    is_settled,
    sample,
    stream_search,
    verify,
)

_ALL = Windows()
_ROWS = {"cpu": 1280, "cuda": 16_384}  # live prefixes of one batch
_LONG = 1000  # tokens of a line whose memory is estimated
_MUCH = 1 << 30  # bytes for one line of which users are warned
_SHORTEN = "shorten or split it, or lower max_length"


def emptied(number: int) -> TranslationError:
    """Return the error of a line, from 0, of which the transforms leave nothing."""
    return TranslationError(
        f"line {number + 1}: the transforms leave nothing of it; shorten or mend the line, or "
        "translate without that transform"
    )


def as_list(folders: Path | str | Sequence[Any]) -> list[Any]:
    """Return one folder, or several, as a list."""
    return [folders] if isinstance(folders, (str, Path)) else list(folders)


class Translator:
    """Translates lines with one model or a token-level ensemble.

    Several threads may use one translator. It cannot be copied or pickled: another process makes
    its own, or is forked.

    Args:
        models: loaded model folders whose vocabularies hold the same tokens, in any order.
        task: what to search for, and how.
        transforms: names of OpenNMT-py's transforms for the input, undone on the output; None: the
            subword transforms of the first model's training.
        transform_options: their options; the first model's training options fill in the rest.
        attention: whether answers count the attended source positions.
        unknown: target words for source words, to replace `<unk>` in texts, see `replace_unknown`;
            None: it stays. Certificates are about token sequences and do not change.
        align: whether answers have the alignments of their hypotheses.
        stepper: that of another translator of these models and options, to share its memory.
        symbols: that outputs of each language may have; None: as the task says.

    Attributes:
        folders: the model folders that were loaded.
        reader: turns text into tokens and ids.
        stepper: of the models.
        dense_attention: whether a source position always has positive weight.

    Models that write from right to left give texts that read from left to right.

    Raises:
        TranslationError: if the vocabularies hold different tokens, a token that may repeat is not
            among them, no model has the attention that `unknown` needs, or some models write from
            left to right and others from right to left.
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
        first = models[0]
        self.folders = [loaded.folder for loaded in models]
        self.vocabularies = first.vocabularies
        self._first, self._networks = first.model, [loaded.config for loaded in models]
        for loaded in models[1:]:
            refuse_unlike(first, loaded)
        self.task = task
        self._config = self._with_token_ids(task)
        self.dense_attention = any(loaded.config.source_attention_alpha == 1 for loaded in models)
        if symbols is None:
            symbols = language_symbols(models, task.target_symbols)
        self.reader = reader_of(first, transforms, transform_options, symbols)
        self._compiler = ConstraintCompiler(
            self.vocabularies.target, first.right_to_left, task.regex, first.task.copies
        )
        if unknown is not None:
            _refuse_without_attention("replace_unk", task, models)
        if align:
            _refuse_without_attention("report_align", task, models)
        self._answers = LineAnswers(self.reader, self._config, self.dense_attention, unknown, align)
        attention = attention or task.config.penalties.covers or unknown is not None or align
        temperature = 1.0 if task.sampling is None else task.sampling.temp
        dtype = torch.bfloat16 if task.matmul_dtype == "bfloat16" else None
        self.stepper = stepper or make_stepper(models, attention, temperature, dtype)
        self._verifier = self.stepper.double() if task.verify else None

    @property
    def device(self) -> torch.device:
        """Where the models compute."""
        return device_of(self._first)

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
        models = [load(folder, device) for folder in as_list(folders)]
        return cls(models, task or SearchTask(), **keywords)

    def _with_token_ids(self, task: SearchTask) -> SearchConfig:
        """Return the search's configuration, with token ids in place of token texts."""
        target, constraints = self.vocabularies.target, task.config.constraints
        banned = {target.unk} if task.ban_unknown else set()
        for token in task.ignore_when_blocking:
            if token not in target:
                raise TranslationError(
                    f"ignore_when_blocking: {token!r} is not in the target vocabulary"
                )
        ignored = target.encode(task.ignore_when_blocking)
        config = task.config
        if task.mbr is not None and task.method == "beam":  # the more outputs, the better
            listed = max(config.n_best, config.beam_size)
            config = replace(config, n_best=listed, all_found=True)
        return replace(
            config,
            constraints=replace(
                constraints,
                banned=constraints.banned | banned,
                ignore_when_blocking=constraints.ignore_when_blocking | set(ignored),
            ),
        )

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
            raise TypeError("lines are several strings: give a list, of one line too")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if constraints is not None and self.task.sampling is not None:
            raise TranslationError("constraints go with a search, not with sampling")
        line_prefixes = repeat("") if prefixes is None else prefixes
        pairs = zip(lines, line_prefixes, strict=prefixes is not None)
        line_constraints = repeat(LineConstraints()) if constraints is None else constraints
        numbered = enumerate(zip(pairs, line_constraints, strict=constraints is not None))
        for index in count():
            window = list(islice(numbered, windows.size))
            if not window:
                return
            if windows.has(index):
                read = [
                    self._read(number, text, prefix, of_line)
                    for number, ((text, prefix), of_line) in window
                ]
                yield from self._answer_window(read, batch_size)

    def _read(
        self, number: int, text: str, prefix: str, constraints: LineConstraints
    ) -> Line | Answer:
        """Return a line as the model reads it; of a blank one, its answer."""
        if not isinstance(text, str):
            raise TypeError(f"line {number + 1} is {type(text).__name__}; decode it to str")
        if prefix and self.reader.backwards:
            raise TranslationError(
                f"prefix of line {number + 1}: a model that writes from right to left "
                "cannot begin with a prefix"
            )
        tokens, prefix_tokens = self.reader.preprocess(text, prefix)
        source = self.reader.encode(tokens, number)
        prefix_ids = self._prefix_ids(number, prefix_tokens)
        if tokens:
            automaton = self._compiler.automaton(
                constraints,
                lambda phrase: self.reader.preprocess(text, phrase)[1],
                number + 1,
                source.copies,
            )
            return Line(text, source, prefix_ids, automaton)
        if text.split():
            raise emptied(number)
        return Answer(number, text, samples=() if self.task.sampling else None)

    def _answer_window(self, read: Sequence[Line | Answer], batch_size: int) -> Iterator[Answer]:
        """Yield the answers of lines that are sorted and searched together, in their order."""
        answers = [answer for answer in read if isinstance(answer, Answer)]
        lines = [line for line in read if isinstance(line, Line)]
        # A certificate is about the model in its own precision, not in the caller's autocast.
        with torch.autocast(self.device.type, enabled=False):
            if self.task.sampling is not None:
                answers += self._sample(self.task.sampling, lines, batch_size)
            else:
                for line, result in self._search(lines, batch_size):
                    answers.append(self._answer(line, result))
        yield from sorted(answers, key=lambda answer: answer.id)

    def _prefix_ids(self, number: int, tokens: Sequence[str]) -> list[int]:
        """Return the ids of a prefix.

        Raises:
            TranslationError: it is longer than an output may be, or has a token that none has.
        """
        target = self.vocabularies.target
        if len(tokens) > self._config.max_length:
            raise TranslationError(
                f"prefix of line {number + 1}: it has {counted(len(tokens), 'token')}, but "
                f"max_length is {self._config.max_length} and counts the whole output"
            )
        unknown = next((token for token in tokens if not target.can_write(token)), None)
        if unknown is not None:
            raise TranslationError(f"prefix of line {number + 1}: {target.not_written(unknown)}")
        return target.encode(tokens)

    def _search(
        self, lines: Sequence[Line], batch_size: int
    ) -> Iterator[tuple[Line, SearchResult]]:
        """Yield lines and their results in the order in which they are found."""
        if self.task.method == "enumerate":
            for line in lines:
                with self.readable([line.source.example], 1):
                    result = self._exact(line)
                yield line, result
            return
        config = self._config
        sentences = self._sentences(batch_size, config.beam_size)
        longest_first = [*self._batches(lines, sentences)][::-1]
        order = [line for _, group in longest_first for line in group]
        requests = (
            Request(
                batch,
                prefixes=[line.prefix for line in group],
                automata=[line.automaton for line in group],
                banned=[line.source.banned for line in group],
            )
            for batch, group in longest_first
        )
        with self.readable([line.source.example for line in lines], sentences):
            for number, result in stream_search(self.stepper, requests, config, 4 * sentences):
                line = order[number]
                if self.task.method == "exact" and not is_settled(result, config.n_best):
                    result = self._exact(line, result)
                yield line, result

    def _sample(
        self, sampling: Sampling, lines: Sequence[Line], batch_size: int
    ) -> Iterator[Answer]:
        """Yield the answers of lines whose outputs are drawn."""
        samples, longest = self._config.n_best, self._config.max_length
        sentences = self._sentences(batch_size, samples)
        for batch, group in self._batches(lines, sentences):
            prefixes = [line.prefix for line in group]
            with self.readable([line.source.example for line in group], sentences):
                drawn = sample(
                    self.stepper,
                    batch,
                    sampling,
                    samples,
                    longest,
                    batch.indices,
                    prefixes,
                    [line.source.banned for line in group],
                )
            yield from map(self._answers.of_samples, group, drawn)

    def _sentences(self, batch_size: int, width: int) -> int:
        """Return the sentences of a batch: fewer if each is wide, to limit memory."""
        return min(batch_size, max(1, _ROWS[self.device.type] // width))

    def _batches(self, lines: Sequence[Line], sentences: int) -> Iterator[tuple[Batch, list[Line]]]:
        """Yield batches of lines of similar length, short ones first, each with its lines."""
        by_number = {line.source.example.index: line for line in lines}
        examples = [line.source.example for line in lines]
        for batch in batches_by_length(examples, sentences, self.vocabularies):
            yield batch, [by_number[number] for number in batch.indices]

    @contextmanager
    def readable(self, examples: Sequence[Example], sentences: int) -> Iterator[None]:
        """Name the longest line if it has more tokens than a Transformer or the memory takes.

        Args:
            examples: those that the block reads; of very long ones users are warned.
            sentences: most of them that are in a batch.

        Raises:
            TooLargeError: names the line.
        """
        with named_exhaustion(lambda: _longest(examples), _SHORTEN):
            length = max(map(_length, examples), default=0)
            if length >= _LONG:
                count = min(sentences, len(examples))
                needed = sum(search_bytes(config, count, length) for config in self._networks)
                check_free(needed, self.device)
                if needed > _MUCH:
                    message = f"{_longest(examples)} needs about {needed / 1e9:,.1f} GB"
                    warnings.warn(message, stacklevel=2)
            yield

    def _exact(self, line: Line, start: SearchResult | None = None) -> SearchResult:
        """Search one line exactly, after what a beam search found of it."""
        task, config = self.task, self._config
        batch = make_batch([line.source.example], self.vocabularies)
        return exact_search(
            self.stepper,
            batch,
            config,
            task.budget,
            line.prefix,
            task.mass,
            start,
            line.automaton,
            line.source.banned,
        )

    def _verify(self, line: Line, result: SearchResult) -> Verification | None:
        """Verify a result; return None if nothing was proven or the task does not ask for it."""
        if self._verifier is None or result.certificate.level == "none":
            return None
        config, budget = self._config, self.task.budget
        batch = make_batch([line.source.example], self.vocabularies)
        return verify(
            self._verifier,
            batch,
            result,
            config,
            line.prefix,
            budget,
            line.automaton,
            line.source.banned,
        )

    def _answer(self, line: Line, result: SearchResult) -> Answer:
        """Return the answer of a line that was searched."""
        answer = self._answers.of_search(line, result, self._verify(line, result))
        if self.task.mbr is None:
            return answer
        return replace(answer, mbr=decide_record(self.task.mbr, answer_record(answer)))


def _refuse_without_attention(option: str, task: SearchTask, models: Sequence[LoadedModel]) -> None:
    """Refuse an option that reads the attention of hypotheses, where there is none.

    Raises:
        TranslationError: outputs are drawn, or no model has attention.
    """
    if task.sampling:
        raise TranslationError(f"{option} goes with a search, not with sampling")
    if all(model.config.global_attention == "none" for model in models):
        raise TranslationError(f"{option} needs a model with attention")


def _length(example: Example) -> int:
    """Return the tokens of the longer side."""
    return max(len(example.source), len(example.target or ()))


def _longest(examples: Sequence[Example]) -> str:
    """Return the longest line, for people."""
    longest = max(examples, key=_length)
    return f"line {longest.index + 1} ({counted(_length(longest), 'token')})"
