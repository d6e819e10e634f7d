"""Predict strings with trained models; every output comes with a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import ClassVar

import torch

from onmt_entmax.analogous_outputs import NO_ANALOGIES, QueryAnalogies
from onmt_entmax.checkpoint import LoadedModel, read_cells
from onmt_entmax.config import TargetSymbols
from onmt_entmax.data.subwords import SUBWORD_TRANSFORMS
from onmt_entmax.ensembles import loaded_models
from onmt_entmax.errors import UserError
from onmt_entmax.group_search import ModelGroup
from onmt_entmax.model_groups import common_task, groups_of
from onmt_entmax.options.recorded import transforms_of
from onmt_entmax.options.target_symbols import language_symbols
from onmt_entmax.parallel.windows import Windows
from onmt_entmax.prediction import Prediction
from onmt_entmax.prediction_builder import PredictionBuilder
from onmt_entmax.query_checks import QueryChecker, TransducerError
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.task import Query
from onmt_entmax.writing_warnings import Nouns, WritingWarnings


class Transducer:
    """Maps strings to strings with one model or an ensemble.

    Models may have any task: pronunciation, transliteration, inflection, translation. Models of
    one direction with the same vocabularies form a token-level ensemble; others are searched apart
    and form a sequence-level ensemble (`onmt_entmax/search/sequence_ensemble.py`).

    Args:
        folders: model or run folders, or loaded models.
        n_best: outputs returned for each query; 0 lists all that the beam finds and, where it does
            not find all of positive probability, all that an enumeration finds in `budget` steps.
        beam_size: live prefixes of a search; at least `n_best`.
        max_length: longest output, in tokens.
        device: the CPU if None.
        budget: decoder steps of an enumeration, which is made only if `n_best` is 0; 0: none.
        target_symbols: `language`: an output may have only symbols of its source, and of training
            targets of its language; `any`: it may have all symbols; None: `config.TARGET_SYMBOLS`.
        matmul_dtype: the type of products in LSTMs: "float32" or "bfloat16".
        analogies: training pairs, each a query and its target. Outputs that follow from them by
            analogy are mixed with those of the models (`onmt_entmax/strings/analogies.py`), and
            certificates are about the mixture.

    Attributes:
        task: what the models read and write.
        folders: the model folders that were loaded.
        languages: languages that the source vocabularies of all models have.
        tags: tags that the source vocabularies of all models have.
        cells: the combinations of tags in the training data of the first model; empty if it
            records none.
        analogies: outputs by analogy with the given pairs; None without any.

    Raises:
        TransducerError: if no folder is named, the models have different tasks or no language in
            common, or a pair of `analogies` cannot be used, see `checked` and `score`.
        CheckpointError: if a folder cannot be read.
        ValueError: if a number is out of range.
    """

    _nouns: ClassVar = Nouns()  # for warnings

    def __init__(
        self,
        folders: Path | str | LoadedModel | Sequence[Path | str | LoadedModel],
        n_best: int = 1,
        beam_size: int = 5,
        max_length: int = 100,
        device: torch.device | None = None,
        budget: int = 10_000,
        target_symbols: TargetSymbols | None = None,
        matmul_dtype: str = "float32",
        analogies: Iterable[tuple[Query, str]] = (),
    ) -> None:
        models = loaded_models(folders, device)
        if not models:
            raise TransducerError("no model is named, such as the folder of a run")
        _refuse_wrong_numbers(beam_size, budget)
        self._n_best = n_best
        self.task = common_task(models)
        self.folders = [model.folder for model in models]
        groups = groups_of(models)
        self._weights = [len(group) / len(models) for group in groups]
        sources = [group[0].vocabularies.source for group in groups]
        self._checker = QueryChecker(self.task, sources)
        self.languages, self.tags = self._checker.languages, self._checker.tags
        if self.task.languages and not self.languages:
            raise _no_common_language(groups)
        self.cells = _cells_for_warnings(self.folders[0])
        self.analogies = QueryAnalogies.of(analogies, self.task, self._checker)
        averages = _may_repeat_texts(groups) or self.analogies is not None
        symbols = language_symbols(models, target_symbols)  # all models exclude the same texts
        self._builder = PredictionBuilder(
            task=self.task,
            checker=self._checker,
            writing=WritingWarnings(self.task, sources, self._nouns, self.cells),
            weights=self._weights if averages else None,
            n_best=n_best,
            restricts_symbols=symbols is not None,
            analogies=self.analogies,
        )
        task = SearchTask(
            _search_config(n_best, beam_size, max_length, averages=averages),
            target_symbols="any" if symbols is None else "language",
            matmul_dtype=matmul_dtype,
        )
        steps = 0 if n_best else budget
        self._groups = [ModelGroup.of(group, task, steps, symbols) for group in groups]

    def predict(
        self, source: str, tags: Sequence[str] | str = (), language: str = ""
    ) -> Prediction:
        """Predict the output for one source.

        Args:
            source: the text as people write it: a word, or symbols with the task's separator.
            tags: such as `["V", "PST"]`, or as in a cell of a table: `"V;PST"`.
            language: one of `languages`, or its ISO 639-3 code.

        Raises:
            TransducerError: if the models cannot answer the query, see `checked`.
            TypeError: if the source is no string.
        """
        return next(self.predictions([self._query(source, tags, language)]))

    def predictions(self, queries: Iterable[Query], batch_size: int = 64) -> Iterator[Prediction]:
        """Predict the outputs of many queries, in order; faster than one by one.

        Args:
            queries: any number of queries. They are read in `Windows`, each sorted by length.
            batch_size: queries searched together.

        Raises:
            TransducerError: if the models cannot answer a query, see `checked`; the message has its
                number.
        """
        numbered = enumerate(queries, 1)
        while window := list(islice(numbered, Windows().size)):
            checked = []
            for number, query in window:
                try:
                    checked.append(self.checked(query))
                except TransducerError as error:
                    raise TransducerError(f"query {number}: {error}") from None
            yield from self._searched(checked, batch_size)

    def score(
        self, source: str, target: str, tags: Sequence[str] | str = (), language: str = ""
    ) -> float:
        """Return the log-probability of a target, in nats; -inf if no output can be this text.

        For an ensemble, or with analogies, it is the logarithm of the mean probability. With
        subwords, it is the probability of the target as the transforms divide it, although the text
        may have other divisions.

        Args:
            source: see `predict`.
            target: the text as people write it.
            tags: see `predict`.
            language: see `predict`.

        Raises:
            TransducerError: if the models cannot answer the query, or the target cannot be divided
                into units.
            TypeError: if the source is no string.
        """
        query = self.checked(self._query(source, tags, language))
        line = " ".join(self.task.encode_source(query))
        problem = self.task.target.problem(target) if target else ""
        if problem:
            raise TransducerError(f"the target {problem}")
        tokens = " ".join(self.task.target.encode(target)) if target else ""
        scores = [group.log_prob(line, tokens) for group in self._groups]
        analogous = self.analogies.outputs(query) if self.analogies else NO_ANALOGIES
        weighted = [
            score + math.log(weight * (1 - analogous.weight))
            for score, weight in zip(scores, self._weights, strict=True)
        ]
        if probability := analogous.weight * analogous.probabilities.get(tokens, 0.0):
            weighted.append(math.log(probability))
        return float(torch.tensor(weighted, dtype=torch.float64).logsumexp(0))

    def checked(self, query: Query) -> Query:
        """Return a query with its language as the models name it.

        Raises:
            TransducerError: if the source is empty or cannot be divided into units, the language is
                unknown or missing, a tag is empty, or the query has a language or tags although the
                models read none.
        """
        return self._checker.checked(query)

    def known_language(self, language: str) -> str:
        """Return a language as the models name it.

        Args:
            language: its name, or an ISO 639-3 code; may be empty if there is only one, or none.

        Raises:
            TransducerError: if the models do not know it, or it is missing or superfluous.
        """
        return self._checker.known_language(language)

    def _query(self, source: str, tags: Sequence[str] | str, language: str) -> Query:
        """Return a query, whose tags may be given as one text, as in a cell of a table."""
        if not isinstance(source, str):
            raise TypeError(
                f"the source is a {type(source).__name__}, not a string; several go to predictions"
            )
        parts = self.task.tags_of(tags) if isinstance(tags, str) else tuple(tags)
        return Query(source, parts, language)

    def _searched(self, queries: Sequence[Query], batch_size: int) -> Iterator[Prediction]:
        """Yield the predictions of queries that were checked."""
        lines = [" ".join(self.task.encode_source(query)) for query in queries]
        streams = [group.answers(lines, batch_size) for group in self._groups]
        for query, *answers in zip(queries, *streams, strict=True):
            yield self._builder.prediction(query, answers)


def _refuse_wrong_numbers(beam_size: int, budget: int) -> None:
    """Refuse numbers out of range that no search might read and refuse.

    A search has a larger beam than `beam_size` if `n_best` is larger, and only an enumeration reads
    the budget.

    Args:
        beam_size: the beam size of a search.
        budget: the steps of an enumeration; 0 for none.

    Raises:
        ValueError: if a number is out of range.
    """
    SearchConfig(beam_size)
    if budget != 0:
        Budget(expansions=budget)


def _no_common_language(groups: Sequence[Sequence[LoadedModel]]) -> TransducerError:
    """Return the error for groups of models that have no language in common."""
    names = " and ".join(str(group[0].folder) for group in groups)
    return TransducerError(f"{names}: no language in common")


def _cells_for_warnings(folder: Path) -> Cells:
    """Return the cells of a model folder; none if the file is damaged, which warnings can lack."""
    with suppress(UserError):
        return read_cells(folder)
    return {}


def _may_repeat_texts(groups: Sequence[Sequence[LoadedModel]]) -> bool:
    """Return whether searches may find a text more than once; its probabilities are then summed.

    Each of several groups of models may find it, and a model of subwords may divide it in several
    ways.
    """
    has_subwords = any(
        SUBWORD_TRANSFORMS.intersection(transforms_of(model.options))
        for group in groups
        for model in group
    )
    return len(groups) > 1 or has_subwords


def _search_config(n_best: int, beam_size: int, max_length: int, *, averages: bool) -> SearchConfig:
    """Return the configuration of a beam search that lists as many outputs as are needed.

    Args:
        n_best: outputs that are returned; 0: all.
        beam_size: live prefixes of the search, or `n_best` if that is larger.
        max_length: longest output, in tokens.
        averages: whether probabilities of a text are averaged or summed. Then the text of the
            largest average need not be among the first of each search, and more must be listed.
    """
    listed = max(beam_size, n_best) if averages and n_best > 0 else n_best
    return SearchConfig(
        beam_size=max(beam_size, n_best),
        n_best=listed or beam_size,
        max_length=max_length,
        all_found=not n_best,
    )
