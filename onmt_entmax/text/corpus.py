"""Corpora: pairs of text files, read and transformed by OpenNMT-py, cut into batches.

The stream of training batches is a function of the seed and of how many batches were taken, so a
resumed run continues at the exact batch.
"""

from __future__ import annotations

import itertools
import random
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ParallelCorpus, TransformPipe
from onmt_entmax.text.batch import Batch, Example, group_by_length, make_batch
from onmt_entmax.text.vocabulary import Vocabularies

VALID = "valid"  # the corpus of this name is the development set, as in OpenNMT-py


class CorpusError(UserError):
    """A corpus that cannot be read: the message names file and line."""


@dataclass(frozen=True)
class CorpusConfig:
    """One pair of files; the names are those of OpenNMT-py's `data:` entries."""

    name: str
    path_src: str
    path_tgt: str
    weight: int = 1
    transforms: tuple[str, ...] = ()
    src_prefix: str | None = None
    tgt_prefix: str | None = None


@dataclass(frozen=True)
class DataConfig:
    """All corpora and how they become batches; the names are OpenNMT-py's options."""

    corpora: tuple[CorpusConfig, ...]
    valid: CorpusConfig | None
    batch_size: int = 64
    batch_type: str = "sents"
    valid_batch_size: int = 32
    bucket_size: int = 262144  # examples that are shuffled and sorted by length together
    skip_empty_level: str = "warning"
    src_seq_length_trunc: int | None = None
    tgt_seq_length_trunc: int | None = None
    seed: int = 0
    transform_options: Mapping[str, Any] = field(default_factory=dict)


Pair = tuple[list[str], list[str]]


def build_pipe(
    config: CorpusConfig, data: DataConfig, vocabularies: Vocabularies | None = None
) -> TransformPipe:
    """OpenNMT-py's transforms for one corpus.

    Without vocabularies, those that need them are left out, as OpenNMT-py does to count tokens.
    """
    corpora = {
        corpus.name: {
            "transforms": list(corpus.transforms),
            "src_prefix": corpus.src_prefix,
            "tgt_prefix": corpus.tgt_prefix,
        }
        for corpus in [*data.corpora, config]
    }
    options = Namespace(**data.transform_options, data=corpora)
    return build_transforms(config.transforms, options, vocabularies)


def build_transforms(
    names: Sequence[str], options: Namespace, vocabularies: Vocabularies | None
) -> TransformPipe:
    """OpenNMT-py's transforms of these names, in order, with their options."""
    # A seed would make every transform reset the global generators whenever it is built.
    options.seed = -1
    tokens = None
    if vocabularies is not None:
        tokens = {
            "src": Namespace(itos=vocabularies.source.tokens),
            "tgt": Namespace(itos=vocabularies.target.tokens),
        }
    transforms = []
    for name in names:
        kind = AVAILABLE_TRANSFORMS[name]
        if tokens is None and kind.require_vocab():
            continue
        transform = kind(options)
        transform.warm_up(tokens)
        transforms.append(transform)
    return TransformPipe.build_from(transforms)


def extra_specials(data: DataConfig) -> tuple[set[str], set[str]]:
    """Special tokens that the transforms of the corpora add to source and target."""
    source: set[str] = set()
    target: set[str] = set()
    for corpus in data.corpora:
        for transform in build_pipe(corpus, data).transforms:
            more_source, more_target = transform.get_specials(transform.opts)
            source |= more_source
            target |= more_target
    return source, target


def read_pairs(
    corpus: CorpusConfig,
    data: DataConfig,
    is_train: bool,
    vocabularies: Vocabularies | None = None,
) -> Iterator[Pair]:
    """Tokenised, transformed and truncated pairs of one corpus, in the order of its files.

    Empty lines and pairs that a transform filters out are left out (the former as
    `skip_empty_level` says).

    Raises:
        CorpusError: a file is missing or not UTF-8, or the files differ in length.
    """
    pipe = build_pipe(corpus, data, vocabularies)
    line = 0
    try:
        for raw in ParallelCorpus(corpus.name, corpus.path_src, corpus.path_tgt).load():
            line += 1
            pair = {side: raw[side].split() for side in ("src", "tgt")}
            if not pair["src"] or not pair["tgt"]:
                _empty_line(corpus, line, data.skip_empty_level)
                continue
            pair |= {"src_original": pair["src"], "tgt_original": pair["tgt"]}
            transformed = pipe.apply(pair, is_train=is_train, corpus_name=corpus.name)
            if transformed is not None:
                yield (
                    transformed["src"][: data.src_seq_length_trunc],
                    transformed["tgt"][: data.tgt_seq_length_trunc],
                )
    except UnicodeDecodeError as error:
        files = f"{corpus.path_src} or {corpus.path_tgt}"
        raise CorpusError(f"{files}: line {line + 1} is not valid UTF-8 ({error.reason})") from None
    except OSError as error:
        raise CorpusError(f"{error.filename}: {error.strerror}") from None


def all_pairs(data: DataConfig) -> Iterator[Pair]:
    """Every training pair once, for counting tokens; random transforms draw from the seed."""
    with _random_state(data.seed):
        for corpus in data.corpora:
            yield from read_pairs(corpus, data, is_train=True)


def _empty_line(corpus: CorpusConfig, line: int, level: str) -> None:
    message = f"{corpus.path_src}, {corpus.path_tgt}: line {line} is empty on one side"
    if level == "error":
        raise CorpusError(f"{message} (skip_empty_level: error)")
    if level == "warning":
        warnings.warn(f"{message}; the pair is skipped", stacklevel=2)


def _count_lines(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in file)
    except OSError as error:
        raise CorpusError(f"{path}: {error.strerror}") from None


def check_corpus(corpus: CorpusConfig) -> None:
    """Refuse a corpus whose files are missing, empty or of different length.

    OpenNMT-py reads such files up to the end of the shorter one without a word.

    Raises:
        CorpusError: names the files and their numbers of lines.
    """
    source, target = _count_lines(corpus.path_src), _count_lines(corpus.path_tgt)
    if source != target:
        raise CorpusError(
            f"corpus {corpus.name!r}: {corpus.path_src} has {source} lines and "
            f"{corpus.path_tgt} has {target}; they must correspond line by line"
        )
    if source == 0:
        raise CorpusError(f"corpus {corpus.name!r}: {corpus.path_src} is empty")


def numericalise(pair: Pair, vocabularies: Vocabularies, index: int) -> Example:
    """Token ids of a pair."""
    source, target = pair
    return Example(vocabularies.source.encode(source), vocabularies.target.encode(target), index)


@dataclass(frozen=True)
class Position:
    """How far a stream of training batches has been read: everything that resuming needs."""

    epoch: int = 0  # passes completed over the data
    bucket: int = 0  # buckets completed in this epoch
    batch: int = 0  # batches taken from this bucket


class TrainingBatches:
    """The endless stream of training batches.

    An epoch ends when every corpus has been read to its end at least once; corpora are mixed in
    proportion to their weights, as OpenNMT-py mixes them, and shorter ones start again. Within an
    epoch, buckets of `bucket_size` examples are cut into batches of similar length, and the
    batches of a bucket come in random order.

    Attributes:
        position: where the stream stands after the batch last yielded.
        epoch_ended: whether that batch was the last of its epoch.
    """

    def __init__(
        self, config: DataConfig, vocabularies: Vocabularies, position: Position | None = None
    ) -> None:
        self.config = config
        self.vocabularies = vocabularies
        self.position = position or Position()
        self.epoch_ended = False

    def __iter__(self) -> Iterator[Batch]:
        while True:
            found = False
            for batch in self._epoch():
                found = True
                yield batch
            if not found:
                raise CorpusError("no training pair is left after transforms and filters")

    def _epoch(self) -> Iterator[Batch]:
        start = self.position
        buckets = self._buckets(start.epoch)
        bucket = next(buckets, None)
        number = 0
        while bucket is not None:
            following = next(buckets, None)
            if number >= start.bucket:
                skip = start.batch if number == start.bucket else 0
                groups = self._batches(bucket, start.epoch, number)
                for taken, group in enumerate(groups[skip:], skip + 1):
                    last = taken == len(groups)
                    self.epoch_ended = last and following is None
                    if self.epoch_ended:
                        self.position = Position(start.epoch + 1)
                    elif last:
                        self.position = Position(start.epoch, number + 1)
                    else:
                        self.position = Position(start.epoch, number, taken)
                    yield make_batch(group, self.vocabularies)
            bucket = following
            number += 1

    def _generator(self, *numbers: int) -> random.Random:
        return random.Random(f"{self.config.seed}/" + "/".join(map(str, numbers)))

    def _batches(self, bucket: Sequence[Example], epoch: int, number: int) -> list[list[Example]]:
        generator = self._generator(epoch, number)
        shuffled = list(bucket)
        generator.shuffle(shuffled)
        groups = list(group_by_length(shuffled, self.config.batch_size, self.config.batch_type))
        generator.shuffle(groups)
        return groups

    def _buckets(self, epoch: int) -> Iterator[list[Example]]:
        pairs = enumerate(self._mixed())
        for number in itertools.count():
            # A bucket is read in one go under its own random state: what its transforms draw
            # depends on the seed alone, not on training or on where a run was resumed.
            with _random_state(self._generator(epoch, number).randrange(2**32)):
                bucket = [
                    numericalise(pair, self.vocabularies, index)
                    for index, pair in itertools.islice(pairs, self.config.bucket_size)
                ]
            if not bucket:
                return
            yield bucket

    def _read(self, corpus: CorpusConfig) -> Iterator[Pair]:
        return read_pairs(corpus, self.config, True, self.vocabularies)

    def _mixed(self) -> Iterator[Pair]:
        """Pairs of all corpora for one epoch: `weight` pairs of each corpus in turn."""
        corpora = self.config.corpora
        streams = [self._read(corpus) for corpus in corpora]
        ended = [False] * len(corpora)
        while True:
            for i, corpus in enumerate(corpora):
                for _ in range(corpus.weight):
                    pair = next(streams[i], None)
                    if pair is None:
                        ended[i] = True
                        if all(ended):
                            return
                        streams[i] = self._read(corpus)
                        pair = next(streams[i], None)
                    if pair is None:
                        raise CorpusError(
                            f"corpus {corpus.name!r}: no pair is left after transforms and filters"
                        )
                    yield pair


@contextmanager
def _random_state(seed: int) -> Iterator[None]:
    """Seed the global generators that OpenNMT-py's transforms draw from; restore them after."""
    python, array = random.getstate(), numpy.random.get_state()
    with torch.random.fork_rng(devices=[]):
        random.seed(seed)
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            numpy.random.set_state(array)


def validation_examples(config: DataConfig, vocabularies: Vocabularies) -> list[Example]:
    """The development set; indices count its kept pairs."""
    assert config.valid is not None, "the caller checks that there is a development set"
    pairs = read_pairs(config.valid, config, False, vocabularies)
    return [numericalise(pair, vocabularies, index) for index, pair in enumerate(pairs)]


def validation_batches(config: DataConfig, vocabularies: Vocabularies) -> list[Batch]:
    """The development set as batches of similar length."""
    examples = validation_examples(config, vocabularies)
    groups = group_by_length(examples, config.valid_batch_size, "sents")
    return [make_batch(group, vocabularies) for group in groups]
