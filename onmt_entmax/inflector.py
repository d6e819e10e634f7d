"""Inflection of words with a trained model: questions in, forms with proofs out."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.inflection import (
    LANGUAGE,
    decode_tag,
    decode_word,
    encode_source,
    encode_word,
    is_tag,
    order_tokens,
)
from onmt_entmax.data.transforms import copying
from onmt_entmax.errors import UserError
from onmt_entmax.report.combine import combined
from onmt_entmax.report.writers import Answer
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.translator import Translator, as_list


class InflectionError(UserError):
    """A model that does not inflect, or a question that it cannot be asked."""


@dataclass(frozen=True)
class Question:
    """A form that is asked for; tags may be given as one string, `"V;PST"`."""

    language: str
    lemma: str
    tags: tuple[str, ...]

    def __post_init__(self) -> None:
        tags = self.tags.split(";") if isinstance(self.tags, str) else self.tags
        object.__setattr__(self, "tags", tuple(tags))


@dataclass(frozen=True)
class Form:
    """One form and the probability that the model gives it; of an average of both orders of writing
    the least that is proven: see `Inflection.certificate`."""

    text: str
    log_prob: float
    prob: float


@dataclass(frozen=True)
class Inflection:
    """The answer to one question."""

    question: Question
    forms: tuple[Form, ...]
    """The most probable first; none where no form ended within the length limit."""
    certificate: Certificate
    """What is proven about the forms. Of an average of both orders of writing, no form has more
    than `bound` beyond what is said; where the level is `exhaustive` that is nothing."""
    warnings: tuple[str, ...]
    """What training never saw, and so what not to trust."""
    only: bool
    """Whether it is proven that no other form than the first has any probability."""

    @property
    def level(self) -> str:
        """`only` (see there), else the level of the certificate: `exhaustive` where every form of
        any probability was found, `optimal` where the first is proven to be the most probable,
        `none` where nothing is proven."""
        return "only" if self.only else self.certificate.level


@dataclass(frozen=True)
class _Way:
    """One order of writing, and the models that are asked for it."""

    translator: Translator
    reverse: bool
    """Whether answers are to be turned around."""
    models: int
    """How many models it stands for."""

    def unknown(self, question: Question) -> list[str]:
        """Characters of the lemma that training never saw."""
        vocabularies = self.translator.vocabularies
        letters = encode_word(question.lemma)
        hidden = copying(letters, vocabularies).hide(letters)
        pairs = zip(letters, hidden, strict=True)
        return [decode_word([t]) for t, read in pairs if read not in vocabularies.source]


class Inflector:
    """A model of inflection, or several whose probabilities are averaged.

    The models were trained on files that `tools/sigmorphon.py prepare` writes. Models that write
    in the same order are averaged character by character. Where models of different orders are
    named, what is known of whole forms is averaged (`onmt_entmax/search/mixture.py`).

    Args:
        folders: model or run folders, of models that write from left to right.
        n_best: forms a question; 0 lists every form of any probability, as far as 10,000 steps
            of the decoder reach (for sparse models that is nearly always all of them).
        beam_size: prefixes kept in a search; at least `n_best` are.
        max_length: longest form, in characters.
        device: where to compute; the CPU unless told otherwise.
        reversed_folders: those of models that write from right to left (`prepare --reverse`).

    Raises:
        InflectionError: no folder is named, or a model does not read a language first.
        CheckpointError: a folder cannot be read.
        TranslationError: the vocabularies of models that write in the same order differ.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        folders: Path | str | Sequence[Path | str],
        n_best: int = 1,
        beam_size: int = 5,
        max_length: int = 100,
        device: torch.device | None = None,
        reversed_folders: Path | str | Sequence[Path | str] = (),
    ) -> None:
        folders, reversed_folders = as_list(folders), as_list(reversed_folders)
        left, right = (
            [load(folder, device) for folder in group] for group in (folders, reversed_folders)
        )
        if not left and not right:
            raise InflectionError("no model is named")
        _check_languages(folders, left)
        _check_languages(reversed_folders, right)
        if beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, not {beam_size}")
        # A mixture knows as many forms of each way as are listed.
        known = max(beam_size, n_best) if left and right and n_best > 0 else n_best
        search = SearchConfig(max(beam_size, n_best), known, max_length)
        task = SearchTask(search, "beam" if n_best else "enumerate")
        self._n_best = n_best
        self._ways: list[_Way] = []
        if left:
            self._ways.append(_Way(Translator(left, task), False, len(left)))
        if right:
            self._ways.append(_Way(Translator(right, task), True, len(right)))
        tokens = set.intersection(
            *(set(models[0].vocabularies.source.tokens) for models in (left, right) if models)
        )
        self.languages = sorted(t.removeprefix(LANGUAGE) for t in tokens if t.startswith(LANGUAGE))
        """The languages that all models know."""
        self.tags = sorted(decode_tag(token) for token in tokens if is_tag(token))
        """The tags that all models know."""
        if not self.languages:
            raise InflectionError(f"{folders[0]} and {reversed_folders[0]}: no language in common")

    def inflect(self, language: str, lemma: str, tags: Sequence[str] | str) -> Inflection:
        """The forms of one word.

        Args:
            language: one of `languages`.
            lemma: the word.
            tags: such as `["V", "PST"]` or `"V;PST"`, in the order of the training data.

        Raises:
            InflectionError: the language is not known, or the lemma or a tag is empty.
        """
        return next(self.answers([Question(language, lemma, tags)]))  # type: ignore[arg-type]

    def answers(self, questions: Iterable[Question], batch_size: int = 64) -> Iterator[Inflection]:
        """The forms of many words, in order, which is sooner than one by one.

        Args:
            questions: all are checked before the first is answered.
            batch_size: questions searched together.

        Raises:
            InflectionError: see `inflect`; the message begins with the number of the question
                where there are several.
        """
        asked = [replace(q, tags=tuple(map(self._known_tag, q.tags))) for q in questions]
        for number, question in enumerate(asked, 1):
            try:
                self.check(question)
            except InflectionError as error:
                where = f"question {number}: " if len(asked) > 1 else ""
                raise InflectionError(f"{where}{error}") from None
        lines = [" ".join(encode_source(q.language, q.lemma, q.tags)) for q in asked]
        each_way = [way.translator.answers(lines, batch_size) for way in self._ways]
        for question, *answers in zip(asked, *each_way, strict=True):
            yield self._inflection(question, answers)

    def _known_tag(self, tag: str) -> str:
        """The tag, without spaces around it where only so it is known; some data has them."""
        return tag.strip() if tag not in self.tags and tag.strip() in self.tags else tag

    def check(self, question: Question) -> None:
        """Refuse what is no question to these models.

        Raises:
            InflectionError: see `inflect`.
        """
        if question.language not in self.languages:
            near = difflib.get_close_matches(question.language, self.languages, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {_some(self.languages)}"
            raise InflectionError(f"the model knows no language {question.language!r}; {hint}")
        if not question.lemma:
            raise InflectionError("the lemma is empty")
        if not question.tags or "" in question.tags:
            raise InflectionError(f"a tag is empty in {';'.join(question.tags)!r}")

    def _inflection(self, question: Question, answers: Sequence[Answer]) -> Inflection:
        found = self._found if len(answers) == 1 else self._averaged
        forms, certificate, finished = found(answers)
        # A string with a symbol for start or padding, which search excludes, is no form.
        only = certificate.level == "exhaustive" and finished == 1
        return Inflection(question, forms, certificate, self._warnings(question, forms), only)

    def _found(self, answers: Sequence[Answer]) -> tuple[tuple[Form, ...], Certificate, int]:
        """Forms, what is proven, and how many there are, of the only way to ask."""
        (answer,) = answers
        assert answer.result is not None, "a question is never blank"
        # Copied characters have taken their places in a text already, so it is safe to turn.
        forms = tuple(
            _form(order_tokens(each.text, self._ways[0].reverse), each.hypothesis.log_prob)
            for each in answer.hypotheses
        )
        return forms, answer.result.certificate, answer.result.finished

    def _averaged(self, answers: Sequence[Answer]) -> tuple[tuple[Form, ...], Certificate, int]:
        """The same of the average of several ways."""
        total = sum(way.models for way in self._ways)
        weights = [way.models / total for way in self._ways]
        reverse = [way.reverse for way in self._ways]
        record = combined([answer.record() for answer in answers], reverse, weights)
        forms = tuple(
            _form(each["text"], -math.inf if each["log_prob"] is None else each["log_prob"])
            for each in record["hypotheses"][: self._n_best or None]
        )
        results = [answer.result for answer in answers if answer.result is not None]
        certificate = _certificate(record, [result.certificate for result in results], weights)
        certificate = replace(certificate, proven=min(certificate.proven, len(forms)))
        return forms, certificate, record["finished"]

    def _warnings(self, question: Question, forms: Sequence[Form]) -> tuple[str, ...]:
        tags = [tag for tag in question.tags if tag not in self.tags]
        letters = dict.fromkeys(letter for way in self._ways for letter in way.unknown(question))
        found = [f"unknown tag {tag}" for tag in tags]
        found += [f"unknown character {letter}" for letter in letters]
        found += ["no form ended within the length limit"] if not forms else []
        return tuple(found)


def _check_languages(folders: Sequence[Path | str], models: Sequence[LoadedModel]) -> None:
    """Refuse what is no model of inflection.

    Raises:
        InflectionError: a model knows no language.
    """
    for folder, each in zip(folders, models, strict=True):
        if not any(token.startswith(LANGUAGE) for token in each.vocabularies.source.tokens):
            raise InflectionError(
                f"{folder}: not a model of inflection: its source vocabulary has no language "
                f"({LANGUAGE}...); tools/sigmorphon.py prepares the data of one that has"
            )


def _form(text: str, log_prob: float) -> Form:
    return Form(decode_word(text.split()), log_prob, math.exp(log_prob))


def _certificate(
    record: Mapping[str, Any], parts: Sequence[Certificate], weights: Sequence[float]
) -> Certificate:
    """The certificate of a mixture, whose bound and gap are those of its forms: see `Mixture`."""
    pairs = list(zip(weights, parts, strict=True))
    possible = [(w, max(c.log_excluded_bound, c.log_bound)) for w, c in pairs]
    forbidden = sum(w * math.exp(log_prob) for w, log_prob in possible)
    if any(log_prob > -math.inf for _, log_prob in possible):
        forbidden = max(forbidden, sys.float_info.min)  # too small for a float is not 0
    first = math.inf if record["certificate"] == "exhaustive" else -math.inf
    return Certificate(
        level=record["certificate"],
        log_bound=math.log(record["bound"]) if record["bound"] else -math.inf,
        gap=first if record["gap"] is None else record["gap"],
        proven=record["proven"],
        mass=record["mass"],
        dropped=sum(part.dropped for part in parts),
        truncated=sum(part.truncated for part in parts),
        excluded=record["excluded"],
        log_excluded_bound=math.log(forbidden) if forbidden else -math.inf,
        strict=all(part.strict for part in parts),
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
