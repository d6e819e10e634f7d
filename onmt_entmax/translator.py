"""From lines of text to answers: one model or an ensemble, a search, and text again."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice, repeat
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.batch import Example, group_by_length, make_batch
from onmt_entmax.data.reader import EncodedSource, Reader, UnknownWords
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel, with_tokens_in_order
from onmt_entmax.opennmt import SequenceTooLongError
from onmt_entmax.options.train import transform_option_names
from onmt_entmax.report.writers import Answer, Decoded
from onmt_entmax.search import (
    EnsembleStepper,
    Hypothesis,
    ModelStepper,
    SearchConfig,
    SearchResult,
    SearchTask,
    Stepper,
    Verification,
    exact_search,
    is_settled,
    stream_search,
    verify,
)
from onmt_entmax.sharding import Windows

_ALL = Windows()
_ROWS = 1280  # prefixes that the sentences of one batch may have in all


class TranslationError(UserError):
    """An input or a set of models that cannot be translated (with)."""


def make_stepper(models: Sequence[LoadedModel], attention: bool = False) -> Stepper:
    """Models as one stepper, which averages the probabilities of several.

    Args:
        models: loaded model folders whose vocabularies hold the same tokens, in any order.
        attention: whether its steps return attention.

    Raises:
        TranslationError: their vocabularies hold other tokens.
    """
    first = models[0].vocabularies
    networks = [_with_ids_of(first, loaded, number) for number, loaded in enumerate(models, 1)]
    steppers = [ModelStepper(network, first.target, attention) for network in networks]
    return EnsembleStepper(steppers) if len(steppers) > 1 else steppers[0]


def _with_ids_of(first: Vocabularies, loaded: LoadedModel, number: int) -> SparseNMTModel:
    """A model of an ensemble, with the ids that the first model's vocabularies give the tokens."""
    if loaded.vocabularies == first:
        return loaded.model
    for side in ("source", "target"):
        own, other = getattr(loaded.vocabularies, side), getattr(first, side)
        different = sorted(set(own.tokens) ^ set(other.tokens))
        if different:
            token = different[0]
            raise TranslationError(
                f"the models of an ensemble must have vocabularies of the same tokens; the {side} "
                f"vocabulary of model {number if token in own else 1} has {token!r}, that of model "
                f"{1 if token in own else number} has not"
            )
    return with_tokens_in_order(loaded.model, loaded.config, loaded.vocabularies, first)


def as_list(folders: Path | str | Sequence[Path | str]) -> list[Path | str]:
    """One folder, or several, as a list."""
    return [folders] if isinstance(folders, (str, Path)) else list(folders)


class Translator:
    """Translates lines with one model, or with several whose probabilities are averaged.

    Several threads may use one translator. It is not to be copied or pickled: another process makes
    its own, or is forked.

    Args:
        models: loaded model folders whose vocabularies hold the same tokens, in any order.
        task: what to search for, and how.
        transforms: names of OpenNMT-py's transforms for the input; undone on the output.
        transform_options: their options; those of the model's training fill in the rest.
        attention: whether answers count the attended source positions.
        unknown: how unknown tokens of the texts are replaced, if at all. It changes texts alone:
            what is certified are strings of tokens, of which `<unk>` is one.

    Attributes:
        reader: what makes tokens and ids of a text.
        stepper: the models as the search sees them.
        dense_attention: whether a source position always has positive weight.

    Raises:
        TranslationError: the vocabularies of the models hold other tokens, a token that may repeat
            is not among them, or no model has the attention that replacing needs.
    """

    def __init__(
        self,
        models: Sequence[LoadedModel],
        task: SearchTask,
        transforms: Sequence[str] = (),
        transform_options: Namespace | None = None,
        attention: bool = False,
        unknown: UnknownWords | None = None,
    ) -> None:
        if not models:
            raise TranslationError("no model is named")
        first = models[0]
        self.vocabularies = first.vocabularies
        self.task = task
        self._config = self._requests(task)
        self.dense_attention = any(loaded.config.dense_attention for loaded in models)
        recorded = {name: first.options.get(name) for name in transform_option_names()}
        options = Namespace(**{**recorded, **vars(transform_options or Namespace())})
        pipe = build_transforms(transforms, options, self.vocabularies)
        self.reader = Reader(self.vocabularies, pipe)
        if unknown and all(m.config.global_attention == "none" for m in models):
            raise TranslationError("replace_unk needs a model with attention")
        self._unknown = unknown
        self._merged = unknown is not None or self.reader.merges
        attention = attention or task.config.penalties.covers or unknown is not None
        self.stepper = make_stepper(models, attention)
        self._judge = self.stepper.double() if task.verify else None

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
            device: where to compute; the CPU unless told otherwise.
            keywords: the other arguments of the class.

        Raises:
            CheckpointError: a folder cannot be read.
            TranslationError: see the class.
        """
        models = [load(folder, device) for folder in as_list(folders)]
        return cls(models, task or SearchTask(), **keywords)

    def _requests(self, task: SearchTask) -> SearchConfig:
        """The search's configuration, with tokens in the place of their names."""
        constraints = task.config.constraints
        banned = {self.vocabularies.target.unk} if task.ban_unknown else set()
        for token in task.ignore_when_blocking:
            if token not in self.vocabularies.target:
                raise TranslationError(
                    f"ignore_when_blocking: {token!r} is not in the target vocabulary"
                )
        ignored = self.vocabularies.target.encode(task.ignore_when_blocking)
        return replace(
            task.config,
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
    ) -> Iterator[Answer]:
        """Translate `lines`, in order; a blank line gives an answer whose `result` is None.

        Args:
            lines: the sources; not one string.
            batch_size: sentences searched together.
            prefixes: for each line what its output must start with, as many as lines.
            windows: which lines to translate, read ahead and sorted by length how many at a time.

        Raises:
            TranslationError: a line is longer than the model can read, a transform takes all of
                it away, or a prefix has a token that no output has or is longer than outputs.
            ValueError: there are not as many prefixes as lines.
        """
        if isinstance(lines, str):
            raise TypeError("lines are several strings: give a list, of one line too")
        given = repeat("") if prefixes is None else prefixes
        pairs = zip(lines, given, strict=prefixes is not None)
        numbered = enumerate(pairs)
        for place in count():
            window = list(islice(numbered, windows.size))
            if not window:
                return
            if not windows.has(place):
                continue
            found: dict[int, Answer] = {}
            texts = {number: line for number, (line, _) in window}
            questions: dict[int, EncodedSource] = {}
            forced: dict[int, list[int]] = {}
            for number, (line, prefix) in window:
                words, beginning = self.reader.preprocess(line, prefix)
                question = self.reader.encode(words, number)
                forced[number] = self._prefix(number, question.copied.hide(beginning))
                if words:
                    questions[number] = question
                elif line.split():
                    raise TranslationError(
                        f"line {number + 1}: the transforms leave nothing of it; shorten or mend "
                        f"the line, or translate without that transform"
                    )
                else:
                    found[number] = Answer(number, line)
            examples = [question.example for question in questions.values()]
            for example, result in self._search(examples, batch_size, forced):
                number = example.index
                verification = self._verify(example, result, forced[number])
                answer = self._answer(texts[number], questions[number], result)
                found[number] = replace(answer, verification=verification)
            for number in texts:
                yield found[number]

    def _prefix(self, number: int, tokens: Sequence[str]) -> list[int]:
        target = self.vocabularies.target
        if len(tokens) > self._config.max_length:
            raise TranslationError(
                f"prefix of line {number + 1}: its {len(tokens)} tokens are more than max_length "
                f"{self._config.max_length}, which counts the whole output"
            )
        unknown = next((token for token in tokens if not target.can_write(token)), None)
        if unknown is not None:
            raise TranslationError(
                f"prefix of line {number + 1}: {unknown!r} is not in the target vocabulary"
            )
        return target.encode(tokens)

    def _search(
        self, examples: Sequence[Example], batch_size: int, forced: Mapping[int, Sequence[int]]
    ) -> Iterator[tuple[Example, SearchResult]]:
        """Results of examples, in the order in which they are found."""
        if self.task.method == "enumerate":
            for example in examples:
                with _readable([example]):
                    result = self._exact(example, forced)
                yield example, result
            return
        config = self._config
        by_index = {example.index: example for example in examples}
        # Wide beams make small batches, so that memory stays what it is.
        sentences = min(batch_size, max(1, _ROWS // config.beam_size))
        groups = list(group_by_length(examples, sentences, "sents"))
        batches = [make_batch(group, self.vocabularies) for group in reversed(groups)]
        order = [index for batch in batches for index in batch.indices]
        work = ((batch, [forced[index] for index in batch.indices]) for batch in batches)
        with _readable(examples):
            for number, result in stream_search(self.stepper, work, config, 4 * sentences):
                example = by_index[order[number]]
                if self.task.method == "exact" and not is_settled(result, config.n_best):
                    result = self._exact(example, forced, result)
                yield example, result

    def _exact(
        self,
        example: Example,
        forced: Mapping[int, Sequence[int]],
        start: SearchResult | None = None,
    ) -> SearchResult:
        task, batch = self.task, make_batch([example], self.vocabularies)
        prefix = forced[example.index]
        return exact_search(
            self.stepper, batch, self._config, task.budget, prefix, task.mass, start
        )

    def _verify(
        self, example: Example, result: SearchResult, prefix: Sequence[int]
    ) -> Verification | None:
        """How a recomputation compares with what is certified; None where nothing is."""
        if self._judge is None or result.certificate.level == "none":
            return None
        batch = make_batch([example], self.vocabularies)
        return verify(self._judge, batch, result, self._config, prefix, self.task.budget)

    def _answer(self, source: str, question: EncodedSource, result: SearchResult) -> Answer:
        best, length = result.best, len(question.words)
        attended: tuple[int, ...] = ()
        if best is not None and best.attention is not None:
            # Softmax gives every position weight; what rounds to zero is counted all the same.
            weights = best.attention[:, :length]
            counts = (weights > 0).sum(1) if not self.dense_attention else [length] * len(weights)
            attended = tuple(int(count) for count in counts)
        return Answer(
            id=question.example.index,
            source=source,
            result=result,
            hypotheses=tuple(Decoded(self._text(h, question), h) for h in result.hypotheses),
            unfinished=(
                None if result.unfinished is None else self._text(result.unfinished, question)
            ),
            attended=attended,
            merged=self._merged,
            scored=self._config.penalties.any,
        )

    def _text(self, hypothesis: Hypothesis, question: EncodedSource) -> str:
        tokens = question.copied.show(self.vocabularies.target.decode(hypothesis.tokens))
        if self._unknown and hypothesis.attention is not None:
            tokens = self._unknown.replace(tokens, question.words, hypothesis.attention)
        return self.reader.postprocess(tokens)


@contextmanager
def _readable(examples: Sequence[Example]) -> Iterator[None]:
    """Say which line it may be if a Transformer meets more tokens than it has positions."""
    try:
        yield
    except SequenceTooLongError as error:
        longest = max(examples, key=lambda example: len(example.source))
        raise TranslationError(
            f"line {longest.index + 1}: its {len(longest.source)} tokens, or the max_length of its "
            f"output, are more than a Transformer model reads ({error})"
        ) from None
