"""Search a group of models with a beam, enumerate what the beam did not find, and score targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.language_symbols import LanguageSymbols
from onmt_entmax.line_reader import emptied_line_error
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import Budget, SearchTask, score_targets
from onmt_entmax.translator import Translator

# Levels of an answer that has every possible output.
_COMPLETE = ("only", "exhaustive")


@dataclass(frozen=True)
class ModelGroup:
    """A model, or a token-level ensemble.

    Attributes:
        translator: searches with a beam.
        enumerator: enumerates all outputs if the beam did not find them; None: nothing does.
    """

    translator: Translator
    enumerator: Translator | None

    @classmethod
    def of(
        cls,
        models: Sequence[LoadedModel],
        task: SearchTask,
        steps: int,
        symbols: LanguageSymbols | None,
    ) -> ModelGroup:
        """Return a group.

        Args:
            models: models of one direction and the same tokens, see `groups_of`.
            task: the task of the beam search.
            steps: decoder steps of an enumeration; 0: there is none.
            symbols: the symbols that outputs of each language may have; None: all.
        """
        translator = Translator(models, task, symbols=symbols)
        if not steps:
            return cls(translator, enumerator=None)
        enumeration = replace(
            task,
            config=replace(task.config, n_best=0),
            method="enumerate",
            budget=Budget(expansions=steps),
        )
        stepper = translator.stepper  # the prepared weights serve both
        enumerator = Translator(models, enumeration, stepper=stepper, symbols=symbols)
        return cls(translator, enumerator)

    def answers(self, lines: Sequence[str], batch_size: int) -> Iterator[Answer]:
        """Search the lines; enumerate where the beam did not find all, if there is an enumerator.

        Args:
            lines: tokens between spaces.
            batch_size: lines searched together.
        """
        for line, answer in zip(lines, self.translator.answers(lines, batch_size), strict=True):
            if self.enumerator is None or answer.level in _COMPLETE:
                yield answer
            else:
                # An enumeration with too few steps may find less than the beam. In a tie, `max`
                # returns the answer of the beam, which comes first.
                yield max(answer, *self.enumerator.answers([line]), key=_completeness)

    def log_prob(self, line: str, target: str) -> float:
        """Return the log-probability of a target, in nats; -inf if no output can be the target.

        Args:
            line: the source, as tokens between spaces.
            target: the target, as tokens between spaces.

        Raises:
            TranslationError: if the transforms leave nothing of the source.
            TooLargeError: if source or target is too long for the memory or a Transformer.
        """
        reader = self.translator.reader
        vocabularies = self.translator.vocabularies
        words, target_tokens = reader.preprocess(line, target)
        if not words:
            raise emptied_line_error(0)
        source = reader.encode(words)
        ids = vocabularies.target.encode(target_tokens)
        can_be_written = all(map(vocabularies.target.can_write, target_tokens))
        if not can_be_written or not set(source.banned).isdisjoint(ids):
            return -math.inf
        batch = make_batch([source.example], vocabularies)
        with (
            self.translator.memory.limited([replace(source.example, target=ids)], 1),
            torch.autocast(self.translator.device.type, enabled=False),
        ):
            return score_targets(self.translator.stepper, batch, [ids])[0].log_prob


def _completeness(answer: Answer) -> tuple[bool, float]:
    """Return whether an answer has all possible outputs, and their total probability."""
    mass = answer.result.certificate.mass if answer.result else 0.0
    return answer.level in _COMPLETE, mass
