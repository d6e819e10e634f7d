"""Inflection of words with a trained model: questions in, forms with proofs out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from onmt_entmax.errors import UserError
from onmt_entmax.reports.writers import Answer
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.text.copying import copying
from onmt_entmax.text.morphology import (
    LANGUAGE,
    decode_tag,
    decode_word,
    encode_source,
    encode_word,
    is_tag,
    turned,
)
from onmt_entmax.translation import Translator


class InflectionError(UserError):
    """A model that does not inflect, or a question that it cannot be asked."""


@dataclass(frozen=True)
class Question:
    """A form that is asked for."""

    language: str
    lemma: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Form:
    """One form and the probability that the model gives it."""

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
    """What is proven about the forms."""
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


class Inflector:
    """A model of inflection, or several whose probabilities are averaged.

    The models were trained on files that `tools/sigmorphon.py prepare` writes.

    Args:
        folders: model or run folders.
        n_best: forms a question; 0 lists every form of any probability, as far as 10,000 steps
            of the decoder reach (for sparse models that is nearly always all of them).
        beam_size: prefixes kept in a search; at least `n_best` are.
        max_length: longest form, in characters.
        device: where to compute; the CPU unless told otherwise.
        reverse: whether the models write forms from right to left (`prepare --reverse`); the
            forms are then turned around. Models that write in other directions are not to be
            averaged here, as their next characters are not the same ones: see tools/combine.py.

    Raises:
        InflectionError: the model does not read a language first.
        CheckpointError: a folder cannot be read.
        TranslationError: the vocabularies of the models differ.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        folders: Sequence[Path | str],
        n_best: int = 1,
        beam_size: int = 5,
        max_length: int = 100,
        device: torch.device | None = None,
        reverse: bool = False,
    ) -> None:
        self._reverse = reverse
        search = SearchConfig(max(beam_size, n_best), n_best, max_length)
        task = SearchTask(search, "beam" if n_best else "enumerate")
        self._translator = Translator.from_folders(folders, task, device)
        tokens = self._translator.vocabularies.source.tokens
        self.languages = sorted(t.removeprefix(LANGUAGE) for t in tokens if t.startswith(LANGUAGE))
        """The languages that the model knows."""
        self.tags = sorted(decode_tag(token) for token in tokens if is_tag(token))
        """The tags that the model knows."""
        if not self.languages:
            raise InflectionError(
                f"{folders[0]}: not a model of inflection: its source vocabulary has no language "
                f"({LANGUAGE}...); tools/sigmorphon.py prepares the data of one that has"
            )

    def inflect(self, language: str, lemma: str, tags: Sequence[str] | str) -> Inflection:
        """The forms of one word.

        Args:
            language: one of `languages`.
            lemma: the word.
            tags: such as `["V", "PST"]` or `"V;PST"`, in the order of the training data.

        Raises:
            InflectionError: the language is not known, or the lemma or a tag is empty.
        """
        named = tags.split(";") if isinstance(tags, str) else tags
        return next(self.answers([Question(language, lemma, tuple(named))]))

    def answers(self, questions: Iterable[Question], batch_size: int = 64) -> Iterator[Inflection]:
        """The forms of many words, in order, which is sooner than one by one.

        Args:
            questions: all are checked before the first is answered.
            batch_size: questions searched together.

        Raises:
            InflectionError: see `inflect`; the message begins with the number of the question
                where there are several.
        """
        listed = [replace(q, tags=tuple(map(self._known_tag, q.tags))) for q in questions]
        for number, question in enumerate(listed, 1):
            try:
                self._check(question)
            except InflectionError as error:
                where = f"question {number}: " if len(listed) > 1 else ""
                raise InflectionError(f"{where}{error}") from None
        lines = (" ".join(encode_source(q.language, q.lemma, q.tags)) for q in listed)
        answers = self._translator.answers(lines, batch_size)
        for question, answer in zip(listed, answers, strict=True):
            yield self._inflection(question, answer)

    def _known_tag(self, tag: str) -> str:
        """The tag, without spaces around it where only so it is known; some data has them."""
        return tag.strip() if tag not in self.tags and tag.strip() in self.tags else tag

    def _check(self, question: Question) -> None:
        if question.language not in self.languages:
            near = difflib.get_close_matches(question.language, self.languages, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {_some(self.languages)}"
            raise InflectionError(f"the model knows no language {question.language!r}; {hint}")
        if not question.lemma:
            raise InflectionError("the lemma is empty")
        if not question.tags or "" in question.tags:
            raise InflectionError(f"a tag is empty in {';'.join(question.tags)!r}")

    def _inflection(self, question: Question, answer: Answer) -> Inflection:
        assert answer.result is not None, "a question is never blank"
        # Copied characters have taken their places in a text already, so it is safe to turn.
        texts = [turned(found.text, self._reverse) for found in answer.hypotheses]
        forms = tuple(
            Form(decode_word(text.split()), found.hypothesis.log_prob, found.hypothesis.prob)
            for text, found in zip(texts, answer.hypotheses, strict=True)
        )
        certificate = answer.result.certificate
        return Inflection(
            question,
            forms,
            certificate,
            self._warnings(question, forms),
            # A string with a symbol for start or padding, which search excludes, is no form.
            only=certificate.level == "exhaustive" and answer.result.finished == 1,
        )

    def _warnings(self, question: Question, forms: Sequence[Form]) -> tuple[str, ...]:
        vocabularies = self._translator.vocabularies
        tokens = encode_source(question.language, question.lemma, question.tags)
        hidden = copying(tokens, vocabularies).hide(tokens)
        tags = [tag for tag in question.tags if tag not in self.tags]
        letters = [
            token
            for token, read in zip(tokens, hidden, strict=True)
            if read not in vocabularies.source and token in encode_word(question.lemma)
        ]
        found = [f"unknown tag {tag}" for tag in tags]
        found += [f"unknown character {decode_word([t])}" for t in dict.fromkeys(letters)]
        found += ["no form ended within the length limit"] if not forms else []
        return tuple(found)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
