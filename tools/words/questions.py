"""New questions about the lemmas of training, and training pairs of the answers to them.

Training data shows a few forms of each lemma. `new_questions` puts lemmas and tags together that it
does not show together, models answer, and `proven_answers` are what there is to learn from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.reports.reading import read_report
from onmt_entmax.text.morphology import UNKNOWN, decode_source
from onmt_entmax.text.vocabulary import COPY_SYMBOL

_NAMELESS = re.compile(f"{UNKNOWN}|{COPY_SYMBOL.format('[0-9]+')}")
_TRIES = 20  # draws for one new question, before there are taken to be no more


class Question(NamedTuple):
    """What a model of inflection is asked."""

    tags: tuple[str, ...]
    lemma: str


def read_questions(path: Path) -> dict[str, list[Question]]:
    """The questions of a source file, by language.

    Raises:
        UserError: the file cannot be read, or names the line that is no question.
    """
    found: dict[str, list[Question]] = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            language, tags, lemma = decode_source(line.split() or [""])
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from None
        found.setdefault(language, []).append(Question(tags, lemma))
    return found


def new_questions(
    known: Sequence[Question], count: int, generator: random.Random
) -> list[Question]:
    """Questions of a language that put known lemmas and tags together as no known one does.

    Tags are drawn as often as training has them. A lemma stays what it is: tags and lemma are of
    questions with the same first tag, which is the part of speech.

    Args:
        known: the training questions of the language.
        count: how many are wanted; fewer where the language does not give so many.
        generator: what is random comes from it alone.
    """
    lemmas: dict[tuple[str, ...], dict[str, None]] = {}
    for question in known:
        lemmas.setdefault(question.tags[:1], {})[question.lemma] = None
    choices = {kind: list(each) for kind, each in lemmas.items()}
    taken = set(known)
    made: list[Question] = []
    tries = count * _TRIES
    while len(made) < count and tries:
        tries -= 1
        tags = generator.choice(known).tags
        question = Question(tags, generator.choice(choices[tags[:1]]))
        if question not in taken:
            taken.add(question)
            made.append(question)
    return made


def proven_answers(
    path: Path, least: float, most: float = 1.0, generator: random.Random | None = None
) -> Iterator[tuple[str, str]]:
    """Source and an output of the sentences of a report whose best output is proven and has a
    probability in these bounds, but for outputs with a character that the model has no name for.

    Args:
        path: an exactness report of `translate.py` or `tools/combine.py`.
        least: the probability that the best output must have.
        most: the probability that it may have.
        generator: draws among the outputs by their probabilities; without it, the best one.

    Raises:
        UserError: the file is no such report.
    """
    for record in read_report(path):
        for best in record["hypotheses"][:1]:
            if record["certificate"] == "none" or not least <= best["prob"] <= most:
                continue
            text = best["text"]
            if generator:
                texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
                probs = [hypothesis["prob"] for hypothesis in record["hypotheses"]]
                [text] = generator.choices(texts, probs)
            if not any(map(_NAMELESS.fullmatch, text.split())):
                yield record["source"], text
