"""Inflect words with trained models; every form comes with a certificate."""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, starmap
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.inflection import (
    LANGUAGE,
    decode_tag,
    decode_word,
    encode_source,
    encode_tag,
    encode_word,
    is_language,
    is_tag,
    split_tags,
)
from onmt_entmax.data.scripts import mixture
from onmt_entmax.data.unknown import readable, unseen_text
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, counted
from onmt_entmax.report.combine import ensemble_of, excluded_by
from onmt_entmax.report.writers import Answer
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.translator import Translator, as_list


class InflectionError(UserError):
    """A model that does not inflect, or a query that it cannot answer."""


@dataclass(frozen=True)
class Question:
    """A query for one form; tags may also be one string, `"V;PST"`.

    A language whose training data has no tags is queried without any.
    """

    language: str
    lemma: str
    tags: tuple[str, ...]

    def __post_init__(self) -> None:
        tags = split_tags(self.tags) if isinstance(self.tags, str) else self.tags
        object.__setattr__(self, "tags", tuple(tags))


@dataclass(frozen=True)
class Inventory:
    """The languages and tags in the source vocabularies of models, of all if there are several."""

    languages: list[str]
    tags: list[str]
    untagged: list[str]
    """Languages whose training data has no tags."""

    @classmethod
    def of(cls, sources: Iterable[Vocabulary]) -> Inventory:
        """Return those that all source vocabularies have."""
        sources = list(sources)
        tokens = set.intersection(*(set(source.tokens) for source in sources))
        languages = sorted(filter(is_language, tokens))
        untagged = [
            language
            for language in languages
            # A vocabulary may not tell which languages its tokens are of.
            if not any(is_tag(t) for source in sources for t in source.seen.get(language, tokens))
        ]
        return cls(
            [language.removeprefix(LANGUAGE) for language in languages],
            sorted(decode_tag(token) for token in tokens if is_tag(token)),
            [language.removeprefix(LANGUAGE) for language in untagged],
        )

    def checked(self, question: Question) -> Question:
        """Return a query with its lemma stripped and its tags as the models know them.

        Raises:
            InflectionError: the language is unknown, the lemma or a tag is empty, the models know
                none of the tags, or there are none although the language has some.
        """
        if question.language not in self.languages:
            near = difflib.get_close_matches(question.language, self.languages, n=1, cutoff=0.8)
            known = ", ".join(self.languages)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {known}"
            raise InflectionError(f"the model knows no language {question.language!r}; {hint}")
        lemma = question.lemma.strip()  # as with the end of a line that a program read
        if not lemma:
            raise InflectionError("the lemma is empty")
        if not question.tags and question.language in self.untagged:
            return replace(question, lemma=lemma)
        if not question.tags or "" in question.tags:
            raise InflectionError(f"a tag is empty in {';'.join(question.tags)!r}")
        tags = tuple(map(self._known, question.tags))
        if not set(tags) & set(self.tags):
            raise InflectionError(
                f"the model knows no tag of {';'.join(tags)!r}; "
                + self._meant(question.language, lemma, tags)
            )
        return replace(question, lemma=lemma, tags=tags)

    def _meant(self, language: str, lemma: str, tags: Sequence[str]) -> str:
        """Return a hint for tags that are all unknown."""
        if language in self.untagged:
            return f"its training data for {language} has none: leave them out, as in ''"
        if set(lemma.split(";")) <= set(self.tags):
            return "are lemma and tags exchanged? The lemma comes first"
        near = meant(encode_tag(";".join(tags)), self.tags).strip(" ()")
        return near or "tags are as in the training data, such as V;PST"

    def _known(self, tag: str) -> str:
        """Return the tag, stripped if only that is known: some data has spaces around tags."""
        return tag.strip() if tag not in self.tags and tag.strip() in self.tags else tag


@dataclass(frozen=True)
class Form:
    """One form with its probability; for a sequence-level ensemble a lower bound of it."""

    text: str
    log_prob: float
    prob: float


@dataclass(frozen=True)
class Inflection:
    """The forms predicted for one query."""

    question: Question
    forms: tuple[Form, ...]
    """The most probable first; none if no form finished within the length limit."""
    certificate: Certificate
    """What is proven about the forms. In a sequence-level ensemble the probability of a form is at
    most `bound` more than the lower bound; if the level is `exhaustive`, the two are equal. There
    `log_excluded_bound` is the logarithm of the mean, over the models, of the larger of the
    excluded bound and the bound."""
    warnings: tuple[str, ...]
    """Reasons why the forms may be wrong: tags and characters that training never saw, at all or in
    this language; a lemma in another Unicode normal form; a lemma or form that mixes scripts."""
    only: bool
    """Whether the support is proven to be a single form."""

    @property
    def level(self) -> str:
        """`only` if the support is a single form, else the level of the certificate.

        `exhaustive`: every form of positive probability was found. `optimal`: the first is proven
        to be the most probable. `none`: neither is proven.
        """
        return "only" if self.only else self.certificate.level

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of `inflect --json`; JSON has no infinity: null for log(0)."""
        return {
            "language": self.question.language,
            "lemma": self.question.lemma,
            "tags": list(self.question.tags),
            "forms": [
                {
                    "form": form.text,
                    "prob": form.prob,
                    "log_prob": form.log_prob if math.isfinite(form.log_prob) else None,
                }
                for form in self.forms
            ],
            "certificate": self.level,
            "proven": self.certificate.proven,
            "bound": self.certificate.bound,
            "mass": min(self.certificate.mass, 1.0),  # rounding may exceed 1
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class _Direction:
    """The models that write in one direction."""

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


def _found(answer: Answer) -> tuple[bool, float]:
    """Return whether an answer is all there is, and its probability."""
    mass = answer.result.certificate.mass if answer.result else 0.0
    return answer.level in ("only", "exhaustive"), mass


class Inflector:
    """Inflects words with one model or an ensemble.

    Models trained on data of `onmt-entmax prepare sigmorphon`. Those of the same direction form a
    token-level ensemble; left-to-right and right-to-left models together form a sequence-level
    ensemble (`onmt_entmax/search/sequence_ensemble.py`).

    Args:
        folders: model or run folders, or loaded models. Models write from left to right, unless the
            folder says otherwise (`onmt-entmax export --right_to_left`).
        n_best: forms returned for each query; 0 lists all that the beam finds and, where it does
            not find all of positive probability, all that an enumeration finds in `budget` steps.
        beam_size: live prefixes of a search; at least `n_best`.
        max_length: longest form, in characters.
        device: the CPU if None.
        reversed_folders: folders of models that write from right to left (`prepare --reverse`),
            whether or not they say so.
        budget: decoder steps of an enumeration; 0: none.

    Raises:
        InflectionError: if no folder is named, or a model has no languages.
        CheckpointError: if a folder cannot be read.
        TranslationError: if the vocabularies of models of the same direction differ.
        ValueError: if a number is out of range.
    """

    def __init__(
        self,
        folders: Path | str | Sequence[Path | str | LoadedModel] = (),
        n_best: int = 1,
        beam_size: int = 5,
        max_length: int = 100,
        device: torch.device | None = None,
        reversed_folders: Path | str | Sequence[Path | str] = (),
        budget: int = 10_000,
    ) -> None:
        models = [
            each if isinstance(each, LoadedModel) else load(each, device)
            for each in as_list(folders)
        ]
        reversed_folders = as_list(reversed_folders)
        models += [replace(load(each, device), right_to_left=True) for each in reversed_folders]
        if not models:
            raise InflectionError(
                "no model is named, such as the folder of a run, or the pretrained one, "
                "onmt_entmax.files.released.pretrained()"
            )
        for each in models:
            if not any(map(is_language, each.vocabularies.source.tokens)):
                raise InflectionError(
                    f"{each.folder}: not a model of inflection: its source vocabulary has no "
                    f"language ({LANGUAGE}...); onmt-entmax prepare sigmorphon prepares the data "
                    "of one that has"
                )
        left = [model for model in models if not model.right_to_left]
        right = [model for model in models if model.right_to_left]
        # A sequence-level ensemble averages the forms that each direction lists.
        listed = max(beam_size, n_best) if left and right and n_best > 0 else n_best
        search = SearchConfig(
            max(beam_size, n_best), listed or beam_size, max_length, all_found=not n_best
        )
        task = SearchTask(search)
        every = SearchTask(replace(search, n_best=0), "enumerate", Budget(expansions=budget or 1))
        self._n_best = n_best
        self.folders = [model.folder for model in models]
        groups = [group for group in (left, right) if group]
        self._directions = []
        for group in groups:
            beam, lister = Translator(group, task), None
            if budget and not n_best:
                lister = Translator(group, every, stepper=beam.stepper)
            self._directions.append(_Direction(beam, lister))
        self._inventory = Inventory.of(group[0].vocabularies.source for group in groups)
        self.languages = self._inventory.languages
        """Languages in the source vocabularies of all models."""
        self.tags = self._inventory.tags
        """Tags in the source vocabularies of all models."""
        self.untagged = self._inventory.untagged
        """Languages whose training data has no tags."""
        if not self.languages:
            raise InflectionError(f"{left[0].folder} and {right[0].folder}: no language in common")

    def inflect(self, language: str, lemma: str, tags: Sequence[str] | str) -> Inflection:
        """Inflect one word.

        Args:
            language: one of `languages`.
            lemma: the word.
            tags: such as `["V", "PST"]` or `"V;PST"`, in the order of the training data.

        Raises:
            InflectionError: if the language is not one of `languages`, or the lemma or a tag is
                empty.
        """
        return next(self.answers([Question(language, lemma, tags)]))  # type: ignore[arg-type]

    def answers(self, questions: Iterable[Question], batch_size: int = 64) -> Iterator[Inflection]:
        """Inflect many words, in order; faster than one by one.

        Args:
            questions: the queries, all checked before the first is answered.
            batch_size: queries searched together.

        Raises:
            InflectionError: see `inflect`; among several queries, the message begins with the
                number of the query.
        """
        given, asked = list(questions), []
        for number, question in enumerate(given, 1):
            try:
                asked.append(self._inventory.checked(question))
            except InflectionError as error:
                where = f"question {number}: " if len(given) > 1 else ""
                raise InflectionError(f"{where}{error}") from None
        lines = [" ".join(encode_source(q.language, q.lemma, q.tags)) for q in asked]
        streams = [each.answers(lines, batch_size) for each in self._directions]
        for question, *answers in zip(asked, *streams, strict=True):
            yield self._inflection(question, answers)

    def check(self, question: Question) -> None:
        """Check that these models can answer a query.

        Raises:
            InflectionError: see `inflect`.
        """
        self._inventory.checked(question)

    def _inflection(self, question: Question, answers: Sequence[Answer]) -> Inflection:
        found = self._single if len(answers) == 1 else self._ensemble
        forms, certificate, finished = found(answers)
        # Outputs with start or padding symbols, which search excludes, are no forms.
        only = certificate.level == "exhaustive" and finished == 1
        warnings = self._warnings(question, answers, forms)
        return Inflection(question, forms, certificate, warnings, only)

    def _single(self, answers: Sequence[Answer]) -> tuple[tuple[Form, ...], Certificate, int]:
        """Return forms, certificate and number of finished forms of a single direction."""
        (answer,) = answers
        assert answer.result is not None, "a query is never blank"
        forms = tuple(_form(each.text, each.hypothesis.log_prob) for each in answer.hypotheses)
        return forms, answer.result.certificate, answer.result.finished

    def _ensemble(self, answers: Sequence[Answer]) -> tuple[tuple[Form, ...], Certificate, int]:
        """Return the same of a sequence-level ensemble of both directions."""
        counts = [len(each.translator.folders) for each in self._directions]
        weights = [count / sum(counts) for count in counts]
        records = [answer.record() for answer in answers]
        ensemble = ensemble_of(records, [False] * len(records), weights)
        pairs = zip(ensemble.sequences, map(_log, ensemble.probabilities), strict=True)
        forms = tuple(starmap(_form, islice(pairs, self._n_best or None)))
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
            proven=min(ensemble.proven, len(forms)),
            mass=min(sum(ensemble.probabilities), 1.0),
            dropped=sum(part.dropped for part in parts),
            truncated=sum(part.truncated for part in parts),
            excluded=excluded_by(records, weights),
            log_excluded_bound=_log(forbidden),
            strict=all(part.strict for part in parts),
        )
        return forms, certificate, len(ensemble.sequences)

    def _warnings(
        self, question: Question, answers: Sequence[Answer], forms: Sequence[Form]
    ) -> tuple[str, ...]:
        unknown = dict.fromkeys(token for answer in answers for token in answer.unknown)
        known = self._tags_of(question.language)
        found = [f"unknown {described(token)}{meant(token, known)}" for token in unknown]
        found += dict.fromkeys(
            unseen_text(Counter(answer.unseen))
            + "".join(meant(token, known) for _, token in answer.unseen)
            for answer in answers
            if answer.unseen
        )
        sources = [each.translator.vocabularies.source for each in self._directions]
        texts = [form.text for form in forms]
        found += letter_warnings(question, texts, sources, bool(found))
        found += ["no form ended within the length limit"] if not forms else []
        return tuple(found)

    def _tags_of(self, language: str) -> list[str]:
        """Return the tags that training saw in a language; all if the model does not say which."""
        seen = self._directions[0].translator.vocabularies.source.seen.get(LANGUAGE + language, ())
        return sorted(decode_tag(token) for token in seen if is_tag(token)) or self.tags


def letter_warnings(
    question: Question, forms: Iterable[str], sources: Sequence[Vocabulary], strange: bool
) -> list[str]:
    """Return warnings of a lemma in another normal form than training's, and of mixed scripts.

    Args:
        question: with the lemma.
        forms: predicted for it.
        sources: source vocabularies of the models.
        strange: whether training did not see some tokens of the query.
    """
    warnings = [_other_normal_form(question, sources, strange), mixture(question.lemma)]
    texts = (text for text in dict.fromkeys(forms) if text != question.lemma)
    mixed = [text for text in (mixture(form, question.lemma) for form in texts) if text]
    if mixed:
        others = len(mixed) - 1
        warnings.append(mixed[0] + (f" (and {counted(others, 'other form')})" if others else ""))
    return [warning for warning in warnings if warning]


def _other_normal_form(question: Question, sources: Sequence[Vocabulary], strange: bool) -> str:
    """Return a warning if training saw the lemma's characters in another normal form.

    Nothing is normalised here: the data of some models is in no normal form. A composed lemma whose
    tokens training saw is as in training; the marks of a decomposed one may be from other words.
    """
    forms: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD") if strange else ("NFC",)
    language = LANGUAGE + question.language
    for form in forms:
        other = normalize(form, question.lemma)
        new = set(encode_word(other)) - set(encode_word(question.lemma))
        if new and all(new <= set(each.seen.get(language, each.tokens)) for each in sources):
            named = ", ".join(sorted(map(readable, new)))
            return (
                f"the lemma is not in Unicode's normal form {form}, in which training has {named}: "
                "normalise it"
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


def described(token: str) -> str:
    """Return a source token for people, such as `tag PST` or `character ö`."""
    if is_tag(token):
        return f"tag {readable(decode_tag(token))}"
    return f"character {readable(decode_word([token]))}"


def _form(text: str, log_prob: float) -> Form:
    return Form(decode_word(text.split()), log_prob, math.exp(log_prob))


def _log(prob: float) -> float:
    return math.log(prob) if prob else -math.inf
