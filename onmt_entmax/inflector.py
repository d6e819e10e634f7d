"""Inflect words with trained models; every prediction comes with a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path

import torch

from onmt_entmax.checkpoint import LoadedModel, read_cells
from onmt_entmax.config import TargetSymbols
from onmt_entmax.ensembles import loaded_models
from onmt_entmax.inflection import Form, Inflection, Question
from onmt_entmax.inventory import InflectionError, Inventory
from onmt_entmax.paradigm import Paradigm, cells_of
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.marks import LANGUAGE, is_language, split_tags
from onmt_entmax.transducer import Transducer
from onmt_entmax.writing_warnings import INFLECTION_NOUNS

__all__ = ["Form", "Inflection", "InflectionError", "Inflector", "Inventory", "Question"]


# Beam size for listing all forms of a cell. Most cells have fewer forms, so that the beam finds all
# of them and no enumeration is needed.
_LISTING_BEAM = 10
# Cells of a paradigm that are searched together. Their sources have one lemma and are about equally
# long, so that a batch needs little padding and may be larger than one of other queries.
_CELLS_TOGETHER = 256


class Inflector(Transducer):
    """Inflects words with one model or an ensemble: a `Transducer` of models with languages.

    `onmt-entmax prepare sigmorphon` prepares the data of such models. Models of one direction with
    the same vocabularies form a token-level ensemble; left-to-right and right-to-left models
    together form a sequence-level ensemble (`onmt_entmax/search/sequence_ensemble.py`).

    Args:
        folders: model or run folders, or loaded models, which record their direction. There must be
            one: without any, the error names the pretrained model.
        n_best: forms returned for each query; 0 lists all that the beam finds and, where it does
            not find all of positive probability, all that an enumeration finds in `budget` steps.
        beam_size: live prefixes of a search; at least `n_best`.
        max_length: longest form, in characters.
        device: the CPU if None.
        budget: decoder steps of an enumeration; 0: none.
        target_symbols: "language": a form has only symbols that its lemma, or training forms of its
            language, have; "any": it may have all; None: `config.TARGET_SYMBOLS`.
        matmul_dtype: the type of products in LSTMs: "float32" or "bfloat16".

    Attributes:
        untagged: languages whose training data has no tags.

    Raises:
        InflectionError: if no folder is named, or a model has no languages.
        TransducerError: if the models have different tasks, or no language in common.
        CheckpointError: if a folder cannot be read.
        ValueError: if a number is out of range.
    """

    _nouns = INFLECTION_NOUNS

    def __init__(
        self,
        folders: Path | str | Sequence[Path | str | LoadedModel] = (),
        n_best: int = 1,
        beam_size: int = 5,
        max_length: int = 100,
        device: torch.device | None = None,
        budget: int = 10_000,
        target_symbols: TargetSymbols | None = None,
        matmul_dtype: str = "float32",
    ) -> None:
        models = loaded_models(folders, device)
        refuse_models_without_languages(models)
        super().__init__(
            models,
            n_best,
            beam_size,
            max_length=max_length,
            device=device,
            budget=budget,
            target_symbols=target_symbols,
            matmul_dtype=matmul_dtype,
        )
        # For `paradigm`, which lists all forms; most callers never call it.
        self._make_lister = partial(
            Inflector,
            models,
            n_best=0,
            beam_size=_LISTING_BEAM,
            max_length=max_length,
            budget=budget,
            target_symbols=target_symbols,
            matmul_dtype=matmul_dtype,
        )
        self._inventory = Inventory.of(model.vocabularies.source for model in models)
        self.untagged = self._inventory.untagged

    def inflect(self, language: str, lemma: str, tags: Sequence[str] | str) -> Inflection:
        """Inflect one word.

        Args:
            language: one of `languages`, or its code in ISO 639-3, such as `deu`.
            lemma: the word.
            tags: such as `["V", "PST"]` or `"V;PST"`, in the order of the training data.

        Raises:
            InflectionError: if the models do not know the language or any of the tags, if the lemma
                or a tag is empty, or if tags are missing although the language has some.
        """
        parts = split_tags(tags) if isinstance(tags, str) else tuple(tags)
        return next(self.answers([Question(language, lemma, parts)]))

    def answers(self, questions: Iterable[Question], batch_size: int = 64) -> Iterator[Inflection]:
        """Inflect many words, in order; faster than one by one.

        Args:
            questions: the queries, all checked before the first is answered.
            batch_size: queries searched together.

        Raises:
            InflectionError: see `inflect`; among several queries, the message begins with the
                number of the query.
        """
        unchecked = list(questions)
        checked: list[Question] = []
        for number, question in enumerate(unchecked, 1):
            try:
                checked.append(self._inventory.checked(question))
            except InflectionError as error:
                where = f"question {number}: " if len(unchecked) > 1 else ""
                raise InflectionError(f"{where}{error}") from None
        predictions = self._searched([question.query for question in checked], batch_size)
        for question, prediction in zip(checked, predictions, strict=True):
            yield Inflection(
                question=question,
                forms=prediction.outputs,
                certificate=prediction.certificate,
                warnings=prediction.warnings,
                only=prediction.only,
            )

    def check(self, question: Question) -> None:
        """Check that these models can answer a query.

        Raises:
            InflectionError: see `inflect`.
        """
        self._inventory.checked(question)

    def paradigm(self, language: str, lemma: str, pos: str | None = None) -> Paradigm:
        """Return all forms of all cells of a lemma, whatever `n_best` is.

        Args:
            language: one of `languages`, or its ISO 639-3 code.
            lemma: the word.
            pos: part of speech, such as N or V; needed if the language has several.

        Raises:
            InflectionError: if the models do not know the language, or the lemma is empty.
            UserError: if the first model records no cells of the language, or cells of several
                parts of speech although `pos` names none.
        """
        language = known_as(language, self.languages)
        cells = cells_of(read_cells(self.folders[0]), language, pos, "pos")
        questions = [Question(language, lemma, tags) for tags in cells]
        inflections = self._lister.answers(questions, batch_size=_CELLS_TOGETHER)
        return Paradigm(tuple(inflections))

    @cached_property
    def _lister(self) -> Inflector:
        """An inflector with the same models that lists all forms."""
        return self._make_lister() if self._n_best else self


def refuse_models_without_languages(models: Sequence[LoadedModel]) -> None:
    """Refuse models that do not inflect, since no token of their sources is a language.

    Raises:
        InflectionError: if there is no model, or one has no languages.
    """
    if not models:
        raise InflectionError(
            "no model is named, such as the folder of a run, or the pretrained one, "
            "onmt_entmax.files.released.pretrained()"
        )
    for model in models:
        if not any(map(is_language, model.vocabularies.source.tokens)):
            raise InflectionError(
                f"{model.folder}: not a model of inflection: its source vocabulary has no "
                f"language ({LANGUAGE}...); onmt-entmax prepare sigmorphon prepares the data of "
                "one that has"
            )
