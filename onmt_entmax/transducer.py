"""Predict strings with trained models; every output comes with a certificate."""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice, starmap
from pathlib import Path
from typing import Any, ClassVar, Literal
from unicodedata import normalize

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.config import TargetSymbols
from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.transforms import SUBWORDS
from onmt_entmax.data.unknown import readable, unseen_text
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.files import finite
from onmt_entmax.options.reader import transforms_of
from onmt_entmax.options.recorded import language_symbols
from onmt_entmax.parallel.sharding import Windows
from onmt_entmax.report.combine import ensemble_of, excluded_by
from onmt_entmax.report.writers import Answer
from onmt_entmax.search import Budget, SearchConfig, SearchTask, score_targets
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.scripts import mixture
from onmt_entmax.strings.task import (
    LANGUAGE,
    Query,
    StringTask,
    decode_tag,
    is_language,
    is_tag,
)
from onmt_entmax.strings.units import CHARACTERS, Unit
from onmt_entmax.translator import Translator, as_list, emptied

_UNITS = {"characters": "character", "symbols": "symbol", "text": "word"}


class TransducerError(UserError):
    """Models that do not fit together, or a query that they cannot answer."""


@dataclass(frozen=True)
class Output:
    """One output with its probability; where outputs were averaged, a lower bound of it."""

    text: str
    log_prob: float
    prob: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them: null for log(0)."""
        return finite({"text": self.text, "prob": self.prob, "log_prob": self.log_prob})


@dataclass(frozen=True)
class Prediction:
    """The outputs predicted for one query."""

    query: Query
    outputs: tuple[Output, ...]
    """The most probable first; none if no output finished within the length limit."""
    certificate: Certificate
    """What is proven about the outputs. Where the probabilities of several searches, or of several
    outputs with one text, were added, the probability of a text is at most `bound` more than the
    lower bound; if the level is `exhaustive`, the two are equal. In a sequence-level ensemble
    `log_excluded_bound` is the logarithm of the mean, over the models, of the larger of the
    excluded bound and the bound."""
    warnings: tuple[str, ...]
    """Reasons why the outputs may be wrong: tags and symbols that training never saw, at all or in
    this language, or that are copied; a source in another Unicode normal form; mixed scripts."""
    only: bool
    """Whether there is exactly one output, and the search proved that there is no other."""

    @property
    def level(self) -> str:
        """`only` if there is a single possible output, else the level of the certificate.

        `exhaustive`: every output of positive probability was found. `optimal`: the first is
        proven to be the most probable. `none`: neither is proven.
        """
        return "only" if self.only else self.certificate.level

    @property
    def text(self) -> str:
        """The most probable output; empty if there is none."""
        return self.outputs[0].text if self.outputs else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON has it."""
        return {
            "source": self.query.source,
            "tags": list(self.query.tags),
            "language": self.query.language,
            "outputs": [output.to_dict() for output in self.outputs],
            **proven(self),
        }

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        asked = " ".join([self.query.source, ";".join(self.query.tags), self.query.language])
        return outputs_table(asked.strip(), self.outputs, self.level, self.warnings)


def proven(found: Any) -> dict[str, Any]:
    """Return the certificate and the warnings of a prediction as JSON has them."""
    return {
        "certificate": found.level,
        "proven": found.certificate.proven,
        "bound": found.certificate.bound,
        "mass": min(found.certificate.mass, 1.0),  # rounding may exceed 1
        "warnings": list(found.warnings),
    }


def outputs_table(
    asked: str, outputs: Sequence[Output], level: str, warnings: Sequence[str]
) -> str:
    """Return outputs with their probabilities as an HTML table for a notebook."""
    rows = "".join(
        f"<tr><td><bdi>{escape(each.text)}</bdi></td><td>{each.prob:.4f}</td></tr>"
        for each in outputs
    )
    notes = "".join(f"<br>{escape(text)}" for text in warnings)
    return (
        f"<table><caption><bdi>{escape(asked)}</bdi>: {level}{notes}</caption>"
        f"<tr><th>output</th><th>probability</th></tr>{rows}</table>"
    )


@dataclass(frozen=True)
class _Ensemble:
    """Models of one direction and vocabulary: a token-level ensemble."""

    translator: Translator
    enumerator: Translator | None
    """Lists what the beam of `translator` did not find."""

    def answers(self, lines: Sequence[str], batch_size: int) -> Iterator[Answer]:
        """Search the lines; enumerate where that is asked for and the beam did not find all."""
        for line, answer in zip(lines, self.translator.answers(lines, batch_size), strict=True):
            if self.enumerator and answer.level not in ("only", "exhaustive"):
                # Steps that are too few find less than the beam has.
                answer = max(answer, *self.enumerator.answers([line]), key=_found)
            yield answer

    def log_prob(self, line: str, target: str) -> float:
        """Return the log-probability of a target; both are tokens between spaces."""
        reader, vocabularies = self.translator.reader, self.translator.vocabularies
        words, network = reader.preprocess(line, target)
        if not words:
            raise emptied(0)
        source = reader.encode(words)
        ids = vocabularies.target.encode(network)
        if not all(map(vocabularies.target.can_write, network)) or {*ids} & {*source.banned}:
            return -math.inf
        batch = make_batch([source.example], vocabularies)
        with (
            self.translator.readable([replace(source.example, target=ids)], 1),
            torch.autocast(self.translator.device.type, enabled=False),
        ):
            return score_targets(self.translator.stepper, batch, [ids])[0].log_prob


def _found(answer: Answer) -> tuple[bool, float]:
    """Return whether an answer is all there is, and its probability."""
    mass = answer.result.certificate.mass if answer.result else 0.0
    return answer.level in ("only", "exhaustive"), mass


class Transducer:
    """Maps strings to strings with one model or an ensemble.

    Models of any task: pronunciation, transliteration, inflection, translation. Those of one
    direction and of the same vocabularies form a token-level ensemble; others are searched apart
    and form a sequence-level ensemble (`onmt_entmax/search/sequence_ensemble.py`).

    Args:
        folders: model or run folders, or loaded models.
        n_best: outputs returned for each query; 0 lists all that the beam finds and, where it does
            not find all of positive probability, all that an enumeration finds in `budget` steps.
        beam_size: live prefixes of a search; at least `n_best`.
        max_length: longest output, in tokens.
        device: the CPU if None.
        budget: decoder steps of an enumeration; 0: none.
        target_symbols: `language`: an output has only symbols that its source, or training targets
            of its language, have; `any`: it may have all; None: `config.TARGET_SYMBOLS`.
        matmul_dtype: of products in LSTMs: "float32" or "bfloat16".

    Attributes:
        task: what the models read and write.
        folders: the model folders that were loaded.
        languages: in the source vocabularies of all models.
        tags: likewise.

    Raises:
        TransducerError: no folder is named, or the models have different tasks, or no language in
            common.
        CheckpointError: a folder cannot be read.
        ValueError: a number is out of range.
    """

    _nouns: ClassVar[tuple[str, str]] = ("source", "output")  # for warnings

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
    ) -> None:
        given = [folders] if isinstance(folders, LoadedModel) else as_list(folders)
        models = [each if isinstance(each, LoadedModel) else load(each, device) for each in given]
        if not models:
            raise TransducerError("no model is named, such as the folder of a run")
        SearchConfig(beam_size)  # below, `n_best` may make it larger
        self.task = _common_task(models)
        self.folders = [model.folder for model in models]
        groups: dict[object, list[LoadedModel]] = {}
        for model in sorted(models, key=lambda model: model.right_to_left):
            tokens = [frozenset(side.tokens) for side in model.vocabularies]
            groups.setdefault((model.right_to_left, model.task.copies, *tokens), []).append(model)
        # Of the outputs of different networks, or of different subwords, texts are averaged.
        subwords = any(SUBWORDS.intersection(transforms_of(model.options)) for model in models)
        self._averages = len(groups) > 1 or subwords
        listed = max(beam_size, n_best) if self._averages and n_best > 0 else n_best
        search = SearchConfig(
            max(beam_size, n_best), listed or beam_size, max_length, all_found=not n_best
        )
        symbols = language_symbols(models, target_symbols)  # all models exclude the same texts
        self._of_language = symbols is not None
        task = SearchTask(
            search, target_symbols="language" if symbols else "any", matmul_dtype=matmul_dtype
        )
        every = replace(
            task,
            config=replace(search, n_best=0),
            method="enumerate",
            budget=Budget(expansions=budget or 1),
        )
        self._n_best = n_best
        self._ensembles = []
        for group in groups.values():
            beam, lister = Translator(group, task, symbols=symbols), None
            if budget and not n_best:
                lister = Translator(group, every, stepper=beam.stepper, symbols=symbols)
            self._ensembles.append(_Ensemble(beam, lister))
        self._weights = [len(group) / len(models) for group in groups.values()]
        sources = [group[0].vocabularies.source for group in groups.values()]
        known = set.intersection(*(set(source.tokens) for source in sources))
        self.languages = sorted(t.removeprefix(LANGUAGE) for t in known if is_language(t))
        self._known = {name: name for name in self.languages}
        self.tags = sorted(decode_tag(token) for token in known if is_tag(token))
        if self.task.languages and not self.languages:
            names = " and ".join(str(group[0].folder) for group in groups.values())
            raise TransducerError(f"{names}: no language in common")

    def predict(
        self, source: str, tags: Sequence[str] | str = (), language: str = ""
    ) -> Prediction:
        """Predict the output for one source.

        Args:
            source: as people write it: a word, or symbols with the task's separator between them.
            tags: such as `["V", "PST"]`, or as a table has them: `"V;PST"`.
            language: one of `languages`, or its ISO 639-3 code.

        Raises:
            TransducerError: the query cannot be asked, see `checked`.
        """
        return next(self.predictions([self._query(source, tags, language)]))

    def predictions(self, queries: Iterable[Query], batch_size: int = 64) -> Iterator[Prediction]:
        """Predict the outputs of many queries, in order; faster than one by one.

        Args:
            queries: any number of them; so many are read at a time as are sorted by length.
            batch_size: queries searched together.

        Raises:
            TransducerError: a query cannot be asked, see `checked`; the message has its number.
        """
        numbered = enumerate(queries, 1)
        while window := list(islice(numbered, Windows().size)):
            asked = []
            for number, query in window:
                try:
                    asked.append(self.checked(query))
                except TransducerError as error:
                    raise TransducerError(f"query {number}: {error}") from None
            yield from self._searched(asked, batch_size)

    def score(
        self, source: str, target: str, tags: Sequence[str] | str = (), language: str = ""
    ) -> float:
        """Return the log-probability of a target, in nats; -inf if no output is this text.

        That of an ensemble is the logarithm of the mean probability. With subwords, it is that of
        the target as the transforms divide it; the text may have other divisions.

        Args:
            source: see `predict`.
            target: as people write it.
            tags: see `predict`.
            language: see `predict`.

        Raises:
            TransducerError: the query cannot be asked, or the target cannot be divided into units.
        """
        line = " ".join(self.task.encode_source(self.checked(self._query(source, tags, language))))
        if target and (problem := self.task.target.problem(target)):
            raise TransducerError(f"the target {problem}")
        tokens = " ".join(self.task.target.encode(target)) if target else ""
        scores = [each.log_prob(line, tokens) for each in self._ensembles]
        weighted = [
            score + math.log(weight) for score, weight in zip(scores, self._weights, strict=True)
        ]
        return float(torch.tensor(weighted, dtype=torch.float64).logsumexp(0))

    def checked(self, query: Query) -> Query:
        """Return a query with its language as the models name it.

        Raises:
            TransducerError: the source is empty or cannot be divided into units, the language is
                unknown or missing, a tag is empty, or the task has neither languages nor tags.
        """
        if problem := self.task.source.problem(query.source):
            raise TransducerError(f"the source {problem}")
        if "" in query.tags:
            raise TransducerError(f"a tag is empty in {';'.join(query.tags)!r}")
        if query.tags and not self.task.has_tags:
            raise TransducerError("has tags, and the model reads none")
        return query._replace(language=self.known_language(query.language))

    def known_language(self, language: str) -> str:
        """Return a language as the models name it.

        Args:
            language: its name, or an ISO 639-3 code; may be empty if there is only one, or none.

        Raises:
            TransducerError: the models do not know it, or have no languages.
        """
        if not self.task.languages:
            if language:
                raise TransducerError(
                    f"{language!r} is the language of a query, and the model reads none"
                )
            return ""
        if not language and len(self.languages) == 1:
            return self.languages[0]
        if not language:
            raise TransducerError(
                f"no language is named, and the model knows {', '.join(self.languages)}"
            )
        known = self._known.get(language) or known_as(language, self.languages)
        if known not in self.languages:
            hint = nearest(language, self.languages) or f"; it knows {', '.join(self.languages)}"
            raise TransducerError(f"the model knows no language {language!r}{hint}")
        self._known[language] = known
        return known

    def _query(self, source: str, tags: Sequence[str] | str, language: str) -> Query:
        parts = self.task.tags_of(tags) if isinstance(tags, str) else tuple(tags)
        return Query(source, parts, language)

    def _searched(self, queries: Sequence[Query], batch_size: int) -> Iterator[Prediction]:
        """Yield the predictions of queries that were checked."""
        lines = [" ".join(self.task.encode_source(query)) for query in queries]
        streams = [each.answers(lines, batch_size) for each in self._ensembles]
        for query, *answers in zip(queries, *streams, strict=True):
            found = self._average if self._averages else self._single
            outputs, certificate, finished = found(answers)
            only = certificate.level == "exhaustive" and finished == 1
            warnings = self._warnings(query, answers, outputs)
            # Outputs with start or padding symbols, which search excludes, are no texts, nor are
            # those with a copied symbol in its own place. Others are excluded by request alone.
            if self._of_language and certificate.log_excluded_bound > -math.inf:
                only = False
                warnings += (f"excluded with symbols: probability {certificate.excluded:.3g}",)
            yield Prediction(query, outputs, certificate, warnings, only)

    def _output(self, text: str, log_prob: float) -> Output:
        """Return an output; `text` is tokens between spaces."""
        unit = self.task.target
        decoded = text if unit.kind == "text" else unit.decode(text.split())
        return Output(decoded, log_prob, math.exp(log_prob))

    def _single(self, answers: Sequence[Answer]) -> tuple[tuple[Output, ...], Certificate, int]:
        """Return outputs, certificate and number of finished outputs of a single ensemble."""
        (answer,) = answers
        assert answer.result is not None, "a query is never blank"
        outputs = tuple(
            self._output(each.text, each.hypothesis.log_prob) for each in answer.hypotheses
        )
        return outputs, answer.result.certificate, answer.result.finished

    def _average(self, answers: Sequence[Answer]) -> tuple[tuple[Output, ...], Certificate, int]:
        """Return the same of texts whose probabilities are averaged."""
        weights = self._weights
        records = [answer.record() for answer in answers]
        # Words of different subwords are compared as texts.
        ensemble = ensemble_of(records, weights)
        pairs = zip(ensemble.sequences, map(_log, ensemble.probabilities), strict=True)
        outputs = tuple(starmap(self._output, islice(pairs, self._n_best or None)))
        parts = [answer.result.certificate for answer in answers if answer.result is not None]
        # An excluded sequence starts with a prefix that a model excluded or did not follow.
        bounds = [max(part.log_excluded_bound, part.log_bound) for part in parts]
        forbidden = sum(w * math.exp(bound) for w, bound in zip(weights, bounds, strict=True))
        if max(bounds) > -math.inf:
            forbidden = max(forbidden, sys.float_info.min)  # underflow must not give 0
        certificate = Certificate(
            level=ensemble.level,
            log_bound=_log(ensemble.bound),
            gap=ensemble.gap,
            proven=min(ensemble.proven, len(outputs)),
            mass=min(sum(ensemble.probabilities), 1.0),
            dropped=sum(part.dropped for part in parts),
            truncated=sum(part.truncated for part in parts),
            excluded=excluded_by(records, weights),
            log_excluded_bound=_log(forbidden),
            strict=all(part.strict for part in parts),
        )
        return outputs, certificate, len(ensemble.sequences)

    def _warnings(
        self, query: Query, answers: Sequence[Answer], outputs: Sequence[Output]
    ) -> tuple[str, ...]:
        unit = self.task.source
        unknown = dict.fromkeys(token for answer in answers for token in answer.unknown)
        copied = dict.fromkeys(token for answer in answers for token in answer.copied)
        known = self._tags_of(query.language)
        found = [f"unknown {described(token, unit)}{meant(token, known)}" for token in unknown]
        found += [
            f"a placeholder stands for the {described(token, unit)}, which training had rarely or "
            "never"
            for token in copied
        ]
        found += dict.fromkeys(
            unseen_text(Counter(answer.unseen))
            + "".join(meant(token, known) for _, token in answer.unseen)
            for answer in answers
            if answer.unseen
        )
        sources = [each.translator.vocabularies.source for each in self._ensembles]
        texts = [output.text for output in outputs]
        found += letter_warnings(query, texts, sources, bool(found), self.task, self._nouns)
        if not outputs:
            found.append(f"no {self._nouns[1]} ended within the length limit")
        return tuple(found)

    def _tags_of(self, language: str) -> list[str]:
        """Return the tags that training saw in a language; all if the model does not say which."""
        seen = self._ensembles[0].translator.vocabularies.source.seen.get(LANGUAGE + language, ())
        return sorted(decode_tag(token) for token in seen if is_tag(token)) or self.tags


def _common_task(models: Sequence[LoadedModel]) -> StringTask:
    """Return the task of models, which may differ in direction, copying and columns of tables.

    Raises:
        TransducerError: names what differs.
    """
    first = models[0]
    for model in models[1:]:
        for name in ("source", "target", "languages", "has_tags"):
            ours, theirs = getattr(first.task, name), getattr(model.task, name)
            if ours != theirs:
                what = name.replace("_", " ")
                raise TransducerError(
                    f"{first.folder} and {model.folder}: models of different tasks; {what}: {ours} "
                    f"and {theirs}"
                )
    return first.task


def letter_warnings(
    query: Query,
    outputs: Iterable[str],
    sources: Sequence[Vocabulary],
    strange: bool,
    task: StringTask,
    nouns: tuple[str, str] = ("source", "output"),
) -> list[str]:
    """Return warnings of a source in another normal form than training's, and of mixed scripts.

    Outputs are in the script of their source in inflection alone, which has tags.

    Args:
        query: has the source.
        outputs: predicted for it.
        sources: source vocabularies of the models.
        strange: whether training did not see some tokens of the query.
        task: of the models.
        nouns: what people call a source and an output.
    """
    warnings = [_other_normal_form(query, sources, strange, task.source, nouns[0])]
    if task.source.kind == "characters":
        warnings.append(mixture(query.source))
    if task.has_tags and task.source == task.target == CHARACTERS:
        texts = (text for text in dict.fromkeys(outputs) if text != query.source)
        mixed = [text for text in (mixture(each, query.source) for each in texts) if text]
        if mixed:
            others = len(mixed) - 1
            more = f" (and {counted(others, f'other {nouns[1]}')})" if others else ""
            warnings.append(mixed[0] + more)
    return [warning for warning in warnings if warning]


def _other_normal_form(
    query: Query, sources: Sequence[Vocabulary], strange: bool, unit: Unit, noun: str
) -> str:
    """Return a warning if training saw the source's characters in another normal form.

    Nothing is normalised here: the data of some models is in no normal form. A composed source
    whose tokens training saw is as in training; the marks of a decomposed one may be from others.
    """
    if unit.kind == "text":  # transforms divide it
        return ""
    forms: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD") if strange else ("NFC",)
    language = LANGUAGE + query.language
    for form in forms:
        other = normalize(form, query.source)
        new = set(unit.encode(other)) - set(unit.encode(query.source))
        if new and all(new <= set(each.seen.get(language, each.tokens)) for each in sources):
            named = ", ".join(sorted(map(readable, new)))
            return (
                f"the {noun} is not in Unicode's normal form {form}, in which training has "
                f"{named}: normalise it"
            )
    return ""


def meant(token: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` of a tag that is not known; else an empty string.

    The tag may be misspelt, in lower case, or several tags without semicolons between them.

    Args:
        token: of a source.
        known: tags.
    """
    by_case = {tag.upper(): tag for tag in known}
    parts = re.split(r"[,;\s]+", decode_tag(token).upper()) if is_tag(token) else []
    near = [difflib.get_close_matches(part, by_case, n=1, cutoff=0.7) for part in parts]
    if not near or not all(near):
        return ""
    return f" (did you mean {';'.join(by_case[each[0]] for each in near)}?)"


def described(token: str, unit: Unit = CHARACTERS) -> str:
    """Return a source token for people, such as `tag PST` or `character ö`.

    Args:
        token: of a source.
        unit: of the source.
    """
    if is_tag(token):
        return f"tag {readable(decode_tag(token))}"
    return f"{_UNITS[unit.kind]} {readable(unit.decode([token]))}"


def _log(prob: float) -> float:
    return math.log(prob) if prob else -math.inf
