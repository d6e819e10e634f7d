"""From lines of text to answers: one model or an ensemble, a search, and text again."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import SequenceTooLongError, TransformPipe
from onmt_entmax.options.train import transform_option_names
from onmt_entmax.reports.writers import Answer, Decoded
from onmt_entmax.search import (
    EnsembleStepper,
    Hypothesis,
    ModelStepper,
    SearchConfig,
    SearchResult,
    Stepper,
    beam_search,
)
from onmt_entmax.text.batch import Example, group_by_length, make_batch
from onmt_entmax.text.corpus import build_transforms

# Lines read ahead to be sorted by length: enough to fill batches well, little enough to stream.
_WINDOW = 4096


class TranslationError(UserError):
    """An input or a set of models that cannot be translated (with)."""


class Translator:
    """Translates lines with one model, or with several whose probabilities are averaged.

    Args:
        models: loaded model folders with the same vocabularies.
        search: how to search.
        transforms: names of OpenNMT-py's transforms for the input; undone on the output.
        transform_options: their options; those of the model's training fill in the rest.
        attention: whether answers count the attended source positions.

    Raises:
        TranslationError: the vocabularies of the models differ.
    """

    def __init__(
        self,
        models: Sequence[LoadedModel],
        search: SearchConfig,
        transforms: Sequence[str] = (),
        transform_options: Namespace | None = None,
        attention: bool = False,
    ) -> None:
        first = models[0]
        for number, other in enumerate(models[1:], 2):
            for side in ("source", "target"):
                if getattr(other.vocabularies, side) != getattr(first.vocabularies, side):
                    raise TranslationError(
                        f"the models of an ensemble must have the same vocabularies; "
                        f"the {side} vocabulary of model {number} differs from that of model 1"
                    )
        self.vocabularies = first.vocabularies
        self.search = search
        self._dense_attention = first.config.global_attention_alpha == 1
        recorded = {name: first.options.get(name) for name in transform_option_names()}
        options = Namespace(**{**recorded, **vars(transform_options or Namespace())})
        self._pipe: TransformPipe = build_transforms(transforms, options, self.vocabularies)
        steppers: list[Stepper] = [
            ModelStepper(loaded.model, loaded.vocabularies.target, attention) for loaded in models
        ]
        self._stepper = EnsembleStepper(steppers) if len(steppers) > 1 else steppers[0]

    @classmethod
    def from_folders(
        cls,
        folders: Sequence[Path | str],
        search: SearchConfig | None = None,
        device: torch.device | None = None,
        **keywords: Any,
    ) -> Translator:
        """Load model folders (or the best checkpoints of run folders) and make a translator."""
        models = [load(Path(folder), device) for folder in folders]
        return cls(models, search or SearchConfig(), **keywords)

    def answers(self, lines: Iterable[str], batch_size: int = 30) -> Iterator[Answer]:
        """Translate `lines`, in order; a blank line gives an empty answer.

        Raises:
            TranslationError: a line is longer than the model can read.
        """
        numbered = enumerate(lines)
        while window := list(islice(numbered, _WINDOW)):
            found: dict[int, Answer] = {}
            examples = []
            for number, line in window:
                tokens = self._tokens(line)
                if tokens:
                    ids = self.vocabularies.source.encode(tokens)
                    examples.append(Example(ids, None, number))
                else:
                    found[number] = Answer(number, line)
            texts = dict(window)
            for group in group_by_length(examples, batch_size, "sents"):
                for number, result in self._search(group):
                    found[number] = self._answer(number, texts[number], result)
            for number, _ in window:
                yield found[number]

    def _tokens(self, line: str) -> list[str]:
        example: dict[str, Any] = {"src": line.split(), "tgt": []}
        example |= {"src_original": example["src"], "tgt_original": []}
        transformed = self._pipe.apply(example, is_train=False, corpus_name="translate")
        tokens: list[str] = transformed["src"] if transformed is not None else []
        return tokens

    def _search(self, group: Sequence[Example]) -> Iterator[tuple[int, SearchResult]]:
        batch = make_batch(group, self.vocabularies)
        try:
            results = beam_search(self._stepper, batch, self.search)
        except SequenceTooLongError as error:
            longest = max(group, key=lambda example: len(example.source))
            raise TranslationError(
                f"line {longest.index + 1}: {len(longest.source)} tokens are more than a "
                f"Transformer model reads ({error})"
            ) from None
        yield from zip(batch.indices, results, strict=True)

    def _answer(self, number: int, source: str, result: SearchResult) -> Answer:
        best = result.best
        attended: tuple[int, ...] = ()
        if best is not None and best.attention is not None:
            # Softmax gives every position weight; what rounds to zero is counted all the same.
            length = len(self._tokens(source))
            weights = best.attention[:, :length]
            counts = (weights > 0).sum(1) if not self._dense_attention else [length] * len(weights)
            attended = tuple(int(count) for count in counts)
        return Answer(
            id=number,
            source=source,
            result=result,
            hypotheses=tuple(Decoded(self._text(h), h) for h in result.hypotheses),
            unfinished=None if result.unfinished is None else self._text(result.unfinished),
            attended=attended,
        )

    def _text(self, hypothesis: Hypothesis) -> str:
        text: str = self._pipe.apply_reverse(
            " ".join(self.vocabularies.target.decode(hypothesis.tokens))
        )
        return text
