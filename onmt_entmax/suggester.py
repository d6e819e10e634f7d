"""Next-word suggestion in text: what a model allows after the words that were written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.reader import Reader
from onmt_entmax.errors import UserError
from onmt_entmax.search import ModelStepper
from onmt_entmax.search import suggest as search_suggestion


class SuggestionError(UserError):
    """A source or a prefix for which nothing can be suggested."""


@dataclass(frozen=True)
class Continuation:
    """One possible next token."""

    token: str
    """`</s>` for the end."""
    log_prob: float
    """After the source and the prefix, in nats."""

    @property
    def prob(self) -> float:
        """The probability."""
        return math.exp(self.log_prob)


@dataclass(frozen=True)
class Suggestions:
    """How the output of a source may go on after a prefix."""

    log_prob: float
    """Log-probability of the prefix; -inf where the model excludes it."""
    excluded_at: int | None
    """Place (from 0) of the prefix's first token that the model excludes, or None. What follows
    speaks of the model as if that token had been possible."""
    continuations: tuple[Continuation, ...]
    """Every possible next token, the most probable first."""
    completion: tuple[str, ...]
    """What follows for certain: the tokens up to the first place where there is a choice."""
    complete: bool
    """Whether the output must end after `completion`."""


class Suggester:
    """A model made ready to suggest many times.

    Args:
        model: a loaded model folder.
    """

    def __init__(self, model: LoadedModel) -> None:
        self._reader = Reader(model.vocabularies)
        self._stepper = ModelStepper(model.model, model.vocabularies.target)

    def __call__(self, source: str, prefix: str = "", max_length: int = 100) -> Suggestions:
        """Say how the output of `source` may go on after `prefix`.

        Args:
            source: tokens between spaces, as the model reads them.
            prefix: tokens between spaces that are written already.
            max_length: longest prefix and completion together.

        Raises:
            SuggestionError: the source is blank, or the prefix has a token that the model does
                not know.
        """
        words, given = self._reader.preprocess(source, prefix)
        if not words:
            raise SuggestionError("the source is blank: give its tokens, between spaces")
        target = self._reader.vocabularies.target
        question = self._reader.encode(words)
        copied = question.copied
        written = copied.hide(given)
        for token in written:
            if not target.can_write(token):
                raise SuggestionError(f"{token!r} is not in the model's target vocabulary")
        batch = make_batch([question.example], self._reader.vocabularies)
        found = search_suggestion(self._stepper, batch, target.encode(written), max_length)
        return Suggestions(
            log_prob=found.log_prob,
            excluded_at=found.excluded_at,
            continuations=tuple(
                Continuation(copied.show([target.tokens[token]])[0], log_prob)
                for token, log_prob in found.continuations
            ),
            completion=tuple(copied.show(target.decode(found.completion))),
            complete=found.complete,
        )


def suggest(
    model: LoadedModel, source: str, prefix: str = "", max_length: int = 100
) -> Suggestions:
    """Say how the output of `source` may go on after `prefix`: see `Suggester`, which is sooner for
    more than one question.

    Args:
        model: as `onmt_entmax.load` returns it.
        source: tokens between spaces, as the model reads them.
        prefix: tokens between spaces that are written already.
        max_length: longest prefix and completion together.

    Raises:
        SuggestionError: see `Suggester`.
    """
    return Suggester(model)(source, prefix, max_length)
