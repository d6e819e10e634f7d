"""Suggest how an output may go on: the next tokens that a model allows after a prefix."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.token_names import UnseenToken
from onmt_entmax.errors import UserError
from onmt_entmax.model import device_of
from onmt_entmax.options.recorded import reader_of
from onmt_entmax.options.target_symbols import language_symbols
from onmt_entmax.search import ModelStepper
from onmt_entmax.search import suggest as search_suggestion


class SuggestionError(UserError):
    """A source that the model cannot read, or a prefix that it cannot write."""


@dataclass(frozen=True)
class NextToken:
    """One possible next token.

    Attributes:
        token: `</s>` for the end of the output.
        log_prob: in nats, given the source and the prefix.
    """

    token: str
    log_prob: float

    @property
    def prob(self) -> float:
        """Probability of the token."""
        return math.exp(self.log_prob)


@dataclass(frozen=True)
class TextSuggestion:
    """How the output of a source may go on after a prefix.

    Attributes:
        log_prob: log-probability of the prefix in nats; -inf if the model excludes it.
        excluded_at: position (from 0) of the prefix's first token that the model excludes, or None.
            The continuations are then as if the model allowed it.
        continuations: all possible next tokens, the most probable first.
        completion: the tokens that must follow, up to the first choice.
        complete: whether the output must end after `completion`.
        source: tokens of the source, as the model reads them.
        prefix: tokens of the prefix.
        unknown: source tokens that are not in the vocabulary; the model read `<unk>` in their
            place.
        unseen: source tokens that training did not see in the source's language, each with the
            token of this language.
    """

    log_prob: float
    excluded_at: int | None
    continuations: tuple[NextToken, ...]
    completion: tuple[str, ...]
    complete: bool
    source: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unseen: tuple[UnseenToken, ...] = ()


class Suggester:
    """Suggests how outputs of a model may go on.

    Outputs have only symbols that a `Translator` allows by default.

    Args:
        model: a loaded model folder. If it writes from right to left, prefixes and completions have
            their last token first.
        transforms: names of OpenNMT-py's transforms for source and prefix; None: the subword
            transforms of the model's training.
    """

    def __init__(self, model: LoadedModel, transforms: Sequence[str] | None = None) -> None:
        reader = reader_of(model, transforms, symbols=language_symbols([model]))
        # Prefixes are given in the order in which the model writes, and must not be reversed.
        forwards = replace(reader.codec, task=replace(model.task, right_to_left=False))
        self._reader = replace(reader, codec=forwards)
        self._stepper = ModelStepper(model.model, model.vocabularies.target)
        self._device = device_of(model.model)

    def __call__(self, source: str, prefix: str = "", max_length: int = 100) -> TextSuggestion:
        """Suggest how the output of `source` may go on after `prefix`.

        Args:
            source: a text, as `Translator` reads it: without transforms, tokens between spaces.
            prefix: the beginning of the output, a text as the source. Transforms segment it as a
                whole text, so it should end with a word.
            max_length: longest prefix and completion together, in tokens.

        Raises:
            SuggestionError: if the source is blank, or the prefix has a token that is not in the
                target vocabulary.
        """
        tokens, prefix_tokens = self._reader.preprocess(source, prefix)
        if not tokens:
            raise SuggestionError("the source is blank, or the transforms leave nothing of it")
        target = self._reader.vocabularies.target
        encoded = self._reader.encode(tokens)
        for token in prefix_tokens:
            if not target.can_write(token):
                raise SuggestionError(target.not_written(token))
        batch = make_batch([encoded.example], self._reader.vocabularies)
        # As in a search, the model computes in its own precision, not in the caller's autocast.
        with torch.autocast(self._device.type, enabled=False):
            suggestion = search_suggestion(
                self._stepper, batch, target.encode(prefix_tokens), max_length, encoded.banned
            )
        return TextSuggestion(
            log_prob=suggestion.log_prob,
            excluded_at=suggestion.excluded_at,
            continuations=tuple(
                NextToken(encoded.copies.show([target.tokens[token]])[0], log_prob)
                for token, log_prob in suggestion.continuations
            ),
            completion=tuple(encoded.copies.show(target.decode(suggestion.completion))),
            complete=suggestion.complete,
            source=tuple(tokens),
            prefix=tuple(encoded.copies.show(prefix_tokens)),
            unknown=encoded.unknown,
            unseen=encoded.unseen,
        )


def suggest(
    model: LoadedModel, source: str, prefix: str = "", max_length: int = 100
) -> TextSuggestion:
    """Suggest how the output of `source` may go on after `prefix`.

    For more than one source or prefix, `Suggester` is faster.

    Args:
        model: as `onmt_entmax.load` returns it.
        source: a text, as `Translator` reads it.
        prefix: the beginning of the output, also a text, or empty.
        max_length: longest prefix and completion together, in tokens.

    Raises:
        SuggestionError: if the source is blank, or the prefix has a token that is not in the
            target vocabulary.
    """
    return Suggester(model)(source, prefix, max_length)
