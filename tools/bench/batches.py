"""Training batches of real text for benchmarks: inflection, or words of a parallel corpus.

As in training, a bucket of pairs is sorted by length and cut into batches, which come in random
order. Unlike there, each bucket is a sample of all pairs, in which some come twice, and batches
that are not full are left out.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from onmt_entmax.cli.tables import read_rows
from onmt_entmax.data.batch import Batch, Example, batches_by_length
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.files import read_lines
from onmt_entmax.strings.task import INFLECTION
from onmt_entmax.strings.units import encode_word

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
PILOT_LANGUAGES = (
    "english german spanish russian turkish finnish arabic hungarian georgian hindi".split()
)
LONGEST = 40  # tokens of a word-level sentence, as in the cleaned training set of KFTT
_WORD = re.compile(r"\w+|[^\w\s]")

Pair = tuple[Sequence[str], Sequence[str]]


def inflection(data: Path | None) -> list[Pair]:
    """Return inflection pairs: language, tags and characters to characters.

    Args:
        data: a folder with `conll2018/`, for the medium setting of ten languages; None for the
            samples of this repository.

    Raises:
        UserError: a file cannot be read.
    """
    folder, part = (data / "conll2018", "train-medium") if data else (SAMPLES, "train")
    pairs: list[Pair] = []
    for language in PILOT_LANGUAGES:
        path = folder / f"{language}-{part}"
        if data or path.is_file():
            for row in read_rows(path):
                query = row.query._replace(language=language)
                pairs.append((INFLECTION.encode_source(query), encode_word(row.target)))
    return pairs


def words(data: Path | None) -> list[Pair]:
    """Return word-level sentence pairs.

    Args:
        data: a folder with `tatoeba-deen/`; None for random words by Zipf's law, where each target
            word is determined by the source word at its position.

    Raises:
        UserError: a file cannot be read.
    """
    if data is None:
        return _synthetic_words(20_000, 18_000, 8, 3.5)
    sides = []
    for language in ("de", "en"):
        lines = read_lines(data / "tatoeba-deen" / f"train.{language}")
        sides.append([_WORD.findall(line.lower()) for line in lines])
    return [
        (source, target)
        for source, target in zip(*sides, strict=True)
        if 0 < len(source) <= LONGEST and 0 < len(target) <= LONGEST
    ]


def captions(data: Path | None) -> list[Pair]:
    """Return tokenised image captions, German and English.

    Args:
        data: a folder with `multi30k/`; None for random words as in `words`, in as long sentences.

    Raises:
        UserError: a file cannot be read.
    """
    if data is None:
        return _synthetic_words(20_000, 10_000, 13, 4)
    sides = (read_lines(data / "multi30k" / f"train.lc.norm.tok.{name}") for name in ("de", "en"))
    return [(source.split(), target.split()) for source, target in zip(*sides, strict=True)]


def sentences(data: Path | None) -> list[Pair]:
    """Return pairs of random words, 24 on average, of 32,000; as `words` without a folder."""
    return _synthetic_words(8_000, 32_000, 24, 8)


def _synthetic_words(count: int, vocabulary: int, mean: float, deviation: float) -> list[Pair]:
    """Return pairs of random words by Zipf's law, whose lengths have a normal distribution."""
    generator = random.Random(1)
    pairs: list[Pair] = []
    for _ in range(count):
        length = min(max(round(generator.gauss(mean, deviation)), 1), LONGEST)
        ranks = [int(vocabulary ** generator.random()) for _ in range(length)]
        pairs.append(([f"s{rank}" for rank in ranks], [f"t{rank}" for rank in ranks]))
    return pairs


def vocabularies(pairs: Sequence[Pair], size: int, joint: bool) -> Vocabularies:
    """Return vocabularies of exactly `size` tokens, padded with unused ones.

    Args:
        pairs: source and target tokens.
        size: size of each side, with special tokens.
        joint: whether the sides share one vocabulary.
    """
    counts = [Counter(chain.from_iterable(side)) for side in zip(*pairs, strict=True)]
    if joint:
        counts = [counts[0] + counts[1]] * 2
    source, target = (_vocabulary(counter, size) for counter in counts)
    return Vocabularies(source, target)


def _vocabulary(counts: Counter[str], size: int) -> Vocabulary:
    """Return the most frequent tokens behind the special ones, padded with unused ones."""
    specials = [str(token) for token in TARGET_SPECIALS]
    tokens = specials + [token for token, _ in counts.most_common() if token not in specials]
    tokens += [f"<unused{number}>" for number in range(size - len(tokens))]
    return Vocabulary(tuple(tokens[:size]))


def batches(
    pairs: Sequence[Pair], vocabularies: Vocabularies, batch_size: int, bucket_size: int
) -> Iterator[Batch]:
    """Yield training batches without end, the same ones at every call.

    Args:
        pairs: source and target tokens.
        vocabularies: of both sides.
        batch_size: pairs of each batch.
        bucket_size: pairs that are sorted by length together.
    """
    encode_source, encode_target = vocabularies.source.encode, vocabularies.target.encode
    generator = random.Random(2)
    while True:
        for seed in range(0, len(pairs) - batch_size + 1, bucket_size):
            bucket = [
                Example(encode_source(source), encode_target(target), 0)
                for source, target in _sample(pairs, bucket_size, seed)
            ]
            in_order = list(batches_by_length(bucket, batch_size, vocabularies))
            generator.shuffle(in_order)
            yield from (batch for batch in in_order if len(batch) == batch_size)


def _sample(pairs: Sequence[Pair], count: int, seed: int) -> list[Pair]:
    """Return random pairs, with replacement: a part of a file may be unlike the whole."""
    return random.Random(seed).choices(pairs, k=count)
