"""Texts that benchmarks train on: real ones from a folder; without one, samples or random words."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.inflection_rows import read_rows
from onmt_entmax.files import read_lines
from onmt_entmax.strings import task
from onmt_entmax.strings.units import encode_word

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
PILOT_LANGUAGES = (
    "english german spanish russian turkish finnish arabic hungarian georgian hindi".split()
)
LONGEST = 40  # tokens of a word-level sentence, as in the cleaned training set of KFTT
_WORD = re.compile(r"\w+|[^\w\s]")


class Pair(NamedTuple):
    """The tokens of a source and of its target."""

    source: Sequence[str]
    target: Sequence[str]


@dataclass(frozen=True)
class Text:
    """A text, and the vocabularies of models that learn it.

    Attributes:
        read: returns the pairs of a folder, or what takes their place if there is None. Raises
            `UserError` if a file cannot be read.
        substitute: what `read` returns without a folder: "samples" of this repository, or "random".
        vocabulary: tokens of each side, with special tokens.
        joint: whether both sides share one vocabulary.
    """

    read: Callable[[Path | None], list[Pair]]
    substitute: str
    vocabulary: int
    joint: bool


def _inflection(data: Path | None) -> list[Pair]:
    """Return inflection pairs of `conll2018/`, medium setting, ten languages, or of the samples."""
    folder, part = (data / "conll2018", "train-medium") if data else (SAMPLES, "train")
    pairs: list[Pair] = []
    for language in PILOT_LANGUAGES:
        path = folder / f"{language}-{part}"
        if data or path.is_file():  # the samples are of fewer languages
            for row in read_rows(path):
                query = row.query._replace(language=language)
                source = task.INFLECTION.encode_source(query)
                pairs.append(Pair(source, encode_word(row.target)))
    return pairs


def _words(data: Path | None) -> list[Pair]:
    """Return pairs of German and English words of `tatoeba-deen/`, or random ones as long."""
    if data is None:
        return random_pairs(20_000, vocabulary=18_000, mean=8, deviation=3.5)
    sides = []
    for language in ("de", "en"):
        lines = read_lines(data / "tatoeba-deen" / f"train.{language}")
        sides.append([_WORD.findall(line.lower()) for line in lines])
    return [
        Pair(source, target)
        for source, target in zip(*sides, strict=True)
        if 0 < len(source) <= LONGEST and 0 < len(target) <= LONGEST
    ]


def _captions(data: Path | None) -> list[Pair]:
    """Return German and English captions of images of `multi30k/`, or random ones as long."""
    if data is None:
        return random_pairs(20_000, vocabulary=10_000, mean=13, deviation=4)
    sides = (read_lines(data / "multi30k" / f"train.lc.norm.tok.{name}") for name in ("de", "en"))
    return [Pair(source.split(), target.split()) for source, target in zip(*sides, strict=True)]


def _sentences(data: Path | None) -> list[Pair]:
    """Return random pairs, as long as those of WMT, whatever the folder: none has real ones."""
    return random_pairs(8_000, vocabulary=32_000, mean=24, deviation=8)


def random_pairs(count: int, *, vocabulary: int, mean: float, deviation: float) -> list[Pair]:
    """Return pairs of random words by Zipf's law.

    Each target word is determined by the source word at its position, so a model can learn them.

    Args:
        count: number of pairs.
        vocabulary: different words.
        mean: number of words of a source, and of its target; normally distributed.
        deviation: standard deviation of that number.
    """
    generator = random.Random(1)
    pairs: list[Pair] = []
    for _ in range(count):
        length = min(max(round(generator.gauss(mean, deviation)), 1), LONGEST)
        ranks = [int(vocabulary ** generator.random()) for _ in range(length)]
        pairs.append(Pair([f"s{rank}" for rank in ranks], [f"t{rank}" for rank in ranks]))
    return pairs


INFLECTION = Text(_inflection, "samples", vocabulary=776, joint=True)
WORDS = Text(_words, "random", vocabulary=18_000, joint=False)
CAPTIONS = Text(_captions, "random", vocabulary=10_000, joint=True)
SENTENCES = Text(_sentences, "random", vocabulary=32_000, joint=True)
