"""All that a training reads: its corpora, checked and read once, and their vocabularies."""

import gc
import itertools
import random
import warnings
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onmt_entmax import files
from onmt_entmax.config import TARGET_SYMBOLS, CorpusConfig, DataConfig
from onmt_entmax.data.batch import Batch, Integers, TokenRows, padded_batch
from onmt_entmax.data.reader import EncodedSource, LanguageSymbols, Reader
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.subwords import SUBWORDS
from onmt_entmax.data.transforms import Pipe, build_transforms
from onmt_entmax.data.vocabulary import (
    STRUCTURAL,
    Vocabularies,
    VocabularyConfig,
    build_vocabularies,
    read_counts,
    refuse_symbols,
)
from onmt_entmax.errors import UserError
from onmt_entmax.strings.cells import Cells, count_cells
from onmt_entmax.strings.task import Codec, frequent_symbols, is_language

MAX_BYTES = 1 << 30  # larger corpora are read again in every epoch
_FIXED_TRANSFORMS = {"filtertoolong", "prefix"}  # these draw no random numbers
_CHUNK = 1 << 14  # lines under one seed when tokens are counted; pairs in memory as text
VALID = "valid"  # the corpus of this name is the development set, as in OpenNMT-py


class CorpusError(UserError):
    """A corpus that cannot be read; the message names the file and line."""


Pair = tuple[list[str], list[str]]


class Development(NamedTuple):
    """The pairs of a development set that the filters keep."""

    sources: list[EncodedSource]
    """Sources as the network reads them, without the pairs that filters drop."""
    targets: list[list[str]]
    """Tokens that the network should write."""
    texts: list[str]
    """Text of each target: the line of its file, behind the `tgt_prefix` if there is one."""
    reader: Reader
    """Returns the text of outputs, as `translate` writes it."""


class Line(NamedTuple):
    """One line of the two files of a corpus, numbered from 1."""

    corpus: CorpusConfig
    number: int
    source: str
    target: str


def build_pipe(
    config: CorpusConfig, data: DataConfig, vocabularies: Vocabularies | None = None
) -> Pipe:
    """Build the transforms of one corpus.

    Without vocabularies, transforms that need them are left out, as in OpenNMT-py's
    `onmt_build_vocab`.
    """
    corpora = {corpus.name: asdict(corpus) for corpus in [*data.corpora, config]}
    options = Namespace(**data.transform_options, data=corpora)
    return build_transforms(config.transforms, options, vocabularies)


def read_lines(corpus: CorpusConfig) -> Iterator[Line]:
    """Yield the untransformed lines of one corpus, in order.

    Raises:
        FileError: a file is missing or not UTF-8.
    """
    sides = (files.read_lines(Path(path)) for path in (corpus.path_src, corpus.path_tgt))
    for number, pair in enumerate(zip(*sides, strict=False), 1):
        yield Line(corpus, number, *pair)


def pair_of(line: Line, pipe: Pipe, data: DataConfig, is_train: bool) -> Pair | None:
    """Split, transform and truncate a line.

    Returns:
        The tokens of the texts of source and target; None if the line is empty on one side or a
        transform filters it out.

    Raises:
        CorpusError: the line is empty on one side, with `skip_empty_level: error`.
        UserError: a token is a symbol of the model's own.
    """
    if not line.source.split() or not line.target.split():
        corpus, level = line.corpus, data.skip_empty_level
        message = f"{corpus.path_src}, {corpus.path_tgt}: line {line.number} is empty on one side"
        if level == "error":
            raise CorpusError(f"{message} (skip_empty_level: error)")
        if level == "warning":
            warnings.warn(f"{message}; the pair is skipped", stacklevel=2)
        return None
    pair = pipe.tokens(line.source, line.target, line.corpus.name, is_train, both=True)
    if pair is None:
        return None
    if not (STRUCTURAL.isdisjoint(pair[0]) and STRUCTURAL.isdisjoint(pair[1])):
        for tokens, path in zip(pair, (line.corpus.path_src, line.corpus.path_tgt), strict=True):
            refuse_symbols(tokens, f"{path}: line {line.number}")
    source, target = pair
    return source[: data.src_seq_length_trunc], target[: data.tgt_seq_length_trunc]


def count_pairs(corpus: CorpusConfig) -> int:
    """Return the number of lines of a corpus.

    OpenNMT-py silently stops at the end of the shorter file.

    Raises:
        CorpusError: the files are empty.
        FileError: one is missing, or their numbers of lines differ.
    """
    paths = (Path(corpus.path_src), Path(corpus.path_tgt))
    lengths = {path: files.count_lines(path) for path in paths}
    files.check_aligned(lengths)
    if not any(lengths.values()):
        raise CorpusError(f"corpus {corpus.name!r}: {corpus.path_src} is empty")
    return lengths[paths[0]]


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as token ids.

    Attributes:
        source: source side of all pairs; filtered ones are empty.
        target: target side, likewise.
        kept: False for filtered pairs.
        vocabularies: vocabularies of the ids.
    """

    source: TokenRows
    target: TokenRows
    kept: NDArray[np.bool_]
    vocabularies: Vocabularies

    def groups(
        self, rows: Integers, seed: str, cut: Callable[[Integers, Integers], list[Integers]]
    ) -> list[Integers]:
        """Return the batches of some pairs in random order.

        Args:
            rows: the pairs.
            seed: of the order.
            cut: cuts pairs with given source and target lengths into batches; returns positions.

        Returns:
            Positions in `rows` of the pairs of each batch.
        """
        order = np.flatnonzero(self.kept[rows]).tolist()
        generator = random.Random(seed)
        generator.shuffle(order)
        places = np.asarray(order, dtype=np.int64)
        lengths = (side.lengths(rows[places]) for side in (self.source, self.target))
        groups = [places[group] for group in cut(*lengths)]
        generator.shuffle(groups)
        return groups

    def batch(self, rows: Integers, indices: Integers) -> Batch:
        """Return some pairs as a batch, longest source first; `indices` become its `indices`."""
        return padded_batch(self.source, self.target, rows, indices, self.vocabularies)


class Seen(NamedTuple):
    """The tokens of one language, of its sources (without its own) and targets."""

    source: set[str]
    target: set[str]


class NumberedPairs:
    """Pairs with tokens numbered in order of appearance."""

    def __init__(self) -> None:
        self._numbers: list[dict[str, int]] = [
            defaultdict(itertools.count().__next__) for _ in range(2)
        ]
        self._ids = [[np.zeros(0, np.int32)] for _ in range(2)]
        self._lengths = [[np.zeros(1, np.int64)] for _ in range(2)]
        self._kept = [np.zeros(0, np.bool_)]

    def add(self, pairs: Iterable[Pair | None]) -> bool:
        """Add pairs, with None for filtered ones; return whether there is one that is not."""
        pairs, first = iter(pairs), len(self._kept)
        enabled = gc.isenabled()
        gc.disable()  # many lists would trigger useless collections
        try:
            while some := list(itertools.islice(pairs, _CHUNK)):
                self._kept.append(np.fromiter((pair is not None for pair in some), np.bool_))
                for side, number in enumerate(self._numbers):
                    lines = [pair[side] if pair else [] for pair in some]
                    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
                    tokens = map(number.__getitem__, itertools.chain.from_iterable(lines))
                    self._ids[side].append(np.fromiter(tokens, np.int32, int(lengths.sum())))
                    self._lengths[side].append(lengths)
        finally:
            if enabled:
                gc.enable()
        return any(kept.any() for kept in self._kept[first:])

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Count the tokens of each side."""
        source, target = (
            Counter(dict(zip(numbers, np.bincount(side.ids).tolist(), strict=True)))
            for side, numbers in zip(self._sides(), self._numbers, strict=True)
        )
        return source, target

    def by_language(self) -> dict[str, Seen] | None:
        """Return the tokens of each language; None unless every source begins with one."""
        sides, names = self._sides(), [np.asarray([*of], object) for of in self._numbers]
        source, kept = sides[0], np.diff(sides[0].starts) > 0
        languages, language = np.unique(source.ids[source.starts[:-1][kept]], return_inverse=True)
        if not all(map(is_language, names[0][languages])):
            return None
        seen = [np.zeros((len(languages), len(of)), np.bool_) for of in names]
        for side, own in zip(sides, seen, strict=True):
            lengths = np.diff(side.starts)[kept]
            own[np.repeat(language.astype(np.int32), lengths), side.ids] = True
        seen[0][np.arange(len(languages)), languages] = False
        return {
            names[0][first]: Seen(set(names[0][of_source]), set(names[1][of_target]))
            for first, of_source, of_target in zip(languages, *seen, strict=True)
        }

    def encode(self, vocabularies: Vocabularies) -> EncodedPairs:
        """Return the pairs as vocabulary ids."""
        source, target = (
            TokenRows(np.asarray(vocabulary.encode(numbers), np.int32)[side.ids], side.starts)
            for side, numbers, vocabulary in zip(
                self._sides(), self._numbers, vocabularies, strict=True
            )
        )
        return EncodedPairs(source, target, np.concatenate(self._kept), vocabularies)

    def _sides(self) -> list[TokenRows]:
        return [
            TokenRows(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))
            for ids, lengths in zip(self._ids, self._lengths, strict=True)
        ]


class TrainingData:
    """The data of a training.

    If all epochs have the same pairs, and these fit in memory, they are read once. They are never
    cached on disk, so a changed file cannot leave stale data.

    Args:
        config: corpora and batches.
        vocabulary: files and sizes of the vocabularies.
        vocabularies: those of a checkpoint to continue from. Otherwise vocabulary files are read,
            and tokens are counted for those that do not exist.

    Attributes:
        config: as given.
        codec: between the tokens of texts, which `config.task` describes, and the network's, which
            everything else here is about.
        vocabularies: of source and target, with the tokens of each language.
        languages: the source tokens of each language; empty unless every source begins with one.
        counts: how often the data has each token of source and target; empty if they need not be
            counted before training.
        specials: tokens that transforms add to source and target.
        new_files: the text of each named vocabulary file that does not exist.
        sizes: number of lines of each corpus.

    Raises:
        CorpusError: a corpus cannot be read or has no pair.
        VocabularyError: a vocabulary file cannot be used, or could not be written.
    """

    def __init__(
        self,
        config: DataConfig,
        vocabulary: VocabularyConfig,
        vocabularies: Vocabularies | None = None,
    ) -> None:
        self.config = config
        self.sizes = [count_pairs(corpus) for corpus in config.corpora]
        if config.valid is not None:
            count_pairs(config.valid)
        added = [
            transform.get_specials(transform.opts)
            for corpus in config.corpora
            for transform in build_pipe(corpus, config).transforms
        ]
        # Sorted, because the vocabularies of several processes must agree.
        self.specials = (
            sorted({token for source, _ in added for token in source}),
            sorted({token for _, target in added for token in target}),
        )
        transforms = {name for corpus in config.corpora for name in corpus.transforms}
        paths = {path for corpus in config.corpora for path in (corpus.path_src, corpus.path_tgt)}
        fits = sum(Path(path).stat().st_size for path in paths) <= MAX_BYTES
        pairs = NumberedPairs() if fits and transforms <= _FIXED_TRANSFORMS else None
        counts: tuple[Counter[str], Counter[str]] | None = None
        continued = vocabularies is not None
        seen: dict[str, Seen] | None = None
        self.codec = Codec(config.task)
        if config.task.copies:
            # Decoding copies what the source vocabulary lacks, so a given one decides.
            named = vocabulary.src_vocab
            if vocabularies is not None:
                self.codec = Codec.of_vocabulary(config.task, vocabularies.source)
            elif named is not None and Path(named).is_file():
                self.codec = Codec.of_vocabulary(config.task, read_counts(named))
            else:
                self.codec = Codec(config.task, self._frequent_symbols())
        first = next(read_lines(config.corpora[0])).source.split()
        if pairs is not None or is_language((first or [""])[0]):
            counts, seen = self._count(pairs)
        self.counts = counts or (Counter(), Counter())
        self.new_files: dict[Path, str] = {}
        if vocabularies is None:
            vocabularies, self.new_files = build_vocabularies(
                vocabulary, lambda: counts or self._count(None)[0], self.specials
            )
        seen = seen or {}
        self.languages = {language: each.source for language, each in seen.items()}
        # Of subwords, others than those of training may write the same letters.
        subwords = not SUBWORDS.isdisjoint(transforms)
        targets = {} if subwords else {language: each.target for language, each in seen.items()}
        self.vocabularies = Vocabularies(
            vocabularies.source.seeing(self.languages, vocabularies.source),
            vocabularies.target.seeing(targets, _complete(vocabularies, seen, continued)),
        )
        self._pairs = pairs.encode(self.vocabularies) if pairs is not None else None

    def _frequent_symbols(self) -> frozenset[str]:
        """Read every pair once; return the source tokens that are not copied."""

        def sources() -> Iterator[list[str]]:
            for corpus in self.config.corpora:
                pipe, lines = build_pipe(corpus, self.config), read_lines(corpus)
                for number in itertools.count():
                    chunk = list(itertools.islice(lines, _CHUNK))
                    if not chunk:
                        break
                    pairs = (pair_of(line, pipe, self.config, True) for line in chunk)
                    seed = f"{self.config.seed}/{corpus.name}/{number}"
                    kept = with_seed(seed, lambda: [pair[0] for pair in pairs if pair])  # noqa: B023
                    yield from kept

        config = self.config
        return frequent_symbols(sources(), config.task, config.copy_frequency)

    def _encoded(self, line: Line, pipe: Pipe, is_train: bool) -> Pair | None:
        """Return the network's tokens of a line; None as `pair_of`."""
        pair = pair_of(line, pipe, self.config, is_train)
        return None if pair is None else self.codec.encode(*pair)[:2]

    def _count(
        self, keep: NumberedPairs | None
    ) -> tuple[tuple[Counter[str], Counter[str]], dict[str, Seen] | None]:
        """Read every pair once; return the counts of tokens, and the tokens of each language.

        Args:
            keep: receives all pairs; None: they are read again in every epoch.
        """
        source, target, languages = Counter[str](), Counter[str](), dict[str, Seen]()
        named = True
        for corpus in self.config.corpora:
            pipe, lines, some = build_pipe(corpus, self.config), read_lines(corpus), False
            for number in itertools.count():
                chunk = list(itertools.islice(lines, _CHUNK))
                if not chunk:
                    break
                part = keep or NumberedPairs()
                texts = (self._encoded(line, pipe, is_train=True) for line in chunk)
                seed = f"{self.config.seed}/{corpus.name}/{number}"
                some |= with_seed(seed, lambda: part.add(texts))  # noqa: B023
                if keep is None:
                    for total, more in zip((source, target), part.counts(), strict=True):
                        total.update(more)
                    tokens = part.by_language()
                    named &= tokens is not None
                    for language, own in (tokens or {}).items():
                        every = languages.setdefault(language, Seen(set(), set()))
                        every.source.update(own.source)
                        every.target.update(own.target)
            if not some:
                raise CorpusError(
                    f"corpus {corpus.name!r}: no pair is left after transforms and filters"
                )
        if keep is not None:
            return keep.counts(), keep.by_language()
        return (source, target), languages if named else None

    def cells(self) -> Cells:
        """Return the cells of the languages; none unless every source begins with a language."""
        if not self.languages:
            return {}
        return count_cells(line.source for each in self.config.corpora for line in read_lines(each))

    def lines(self) -> Iterator[Line]:
        """Yield the untransformed lines of the development set, or of the first corpus."""
        return read_lines(self.config.valid or self.config.corpora[0])

    # --- the development set ---

    def validation(self) -> Development:
        """Return the development set."""
        valid = self.config.valid
        assert valid is not None, "only called with a development set"
        pipe = build_pipe(valid, self.config, self.vocabularies)
        prefix = f"{valid.tgt_prefix or ''} " if "prefix" in valid.transforms else ""
        codec = Codec.of_vocabulary(self.config.task, self.vocabularies.source)
        seen = self.vocabularies.target.seen if TARGET_SYMBOLS == "language" else {}
        symbols = LanguageSymbols(seen) if seen else None  # as `translate` decodes
        found = Development([], [], [], Reader(self.vocabularies, pipe, codec, symbols))
        for line in read_lines(valid):
            if (pair := pair_of(line, pipe, self.config, False)) is not None:
                found.sources.append(found.reader.encode(pair[0], len(found.sources)))
                found.targets.append(found.reader.target_of(*pair))
                found.texts.append(prefix + line.target)
        return found

    # --- epochs ---

    def mixed(self, epoch: int) -> Iterator[tuple[int, int]]:
        """Yield corpus and line, both from 0, of all pairs of an epoch.

        These are `weight` lines of each corpus in turn, as in OpenNMT-py, until every corpus has
        been read completely; shorter ones start again. Each epoch continues where the one before
        stopped.
        """
        weights = [corpus.weight for corpus in self.config.corpora]
        left = self._lines()
        at = [epoch * count % size for count, size in zip(left, self.sizes, strict=True)]
        while any(count > 0 for count in left):
            for corpus, weight in enumerate(weights):
                for _ in range(min(weight, left[corpus])):
                    yield corpus, at[corpus]
                    at[corpus] = (at[corpus] + 1) % self.sizes[corpus]
                left[corpus] -= weight

    def _lines(self) -> list[int]:
        """Return how many lines of each corpus an epoch has."""
        weights = [corpus.weight for corpus in self.config.corpora]
        turns = [-(-size // weight) for weight, size in zip(weights, self.sizes, strict=True)]
        last = max(range(len(turns)), key=lambda i: (turns[i], i))
        lines = [(turns[last] - (i > last)) * weight for i, weight in enumerate(weights)]
        lines[last] = self.sizes[last]
        return lines

    @property
    def epoch_size(self) -> int:
        """Number of lines of an epoch."""
        return sum(self._lines())

    def buckets(self, epoch: int) -> Iterator[Callable[[str], tuple[EncodedPairs, Integers]]]:
        """Yield for each bucket of an epoch a function from a seed to its pairs.

        Transforms draw random numbers from the seed alone, whatever was drawn before. The function
        may be called until the next one is yielded; it returns pairs and the rows of the bucket.
        """
        if self._pairs is None:
            yield from self._read_buckets(epoch)
            return
        starts, size = [0, *itertools.accumulate(self.sizes)], self.config.bucket_size
        rows = np.fromiter((starts[corpus] + line for corpus, line in self.mixed(epoch)), np.int64)
        for begin in range(0, len(rows), size):
            bucket = self._pairs, rows[begin : begin + size]
            yield lambda _, bucket=bucket: bucket  # type: ignore[misc]

    def _read_buckets(self, epoch: int) -> Iterator[Callable[[str], tuple[EncodedPairs, Integers]]]:
        """Yield what `buckets` does, from the files."""
        corpora, vocabularies, config = self.config.corpora, self.vocabularies, self.config
        pipes = [build_pipe(corpus, config, vocabularies) for corpus in corpora]
        streams: dict[int, Iterator[Line]] = {}

        def lines() -> Iterator[tuple[int, Line]]:
            for corpus, first in self.mixed(epoch):
                if corpus not in streams:
                    streams[corpus] = _endless(corpora[corpus], first)
                yield corpus, next(streams[corpus])

        def read(seed: str) -> tuple[EncodedPairs, Integers]:
            pairs = NumberedPairs()
            texts = (self._encoded(line, pipes[at], is_train=True) for at, line in bucket)
            with_seed(seed, lambda: pairs.add(texts))
            encoded = pairs.encode(vocabularies)
            return encoded, np.arange(len(encoded.kept))

        every = lines()
        for _ in range(0, self.epoch_size, config.bucket_size):
            bucket = itertools.islice(every, config.bucket_size)
            yield read
            for _line in bucket:  # lines that the caller did not read
                pass


def _complete(
    vocabularies: Vocabularies, languages: Iterable[str], continued: bool
) -> frozenset[str]:
    """Return the languages all of whose target tokens are known after this training.

    A model of an earlier version did not record those of its training.

    Args:
        vocabularies: before this training.
        languages: of its data.
        continued: whether a training before this one made them.
    """
    source, target = vocabularies
    return frozenset(
        language
        for language in languages
        if language in source
        and (
            not continued
            or language in target.seen
            or (source.seen and language not in source.seen)
        )
    )


def _endless(corpus: CorpusConfig, first: int) -> Iterator[Line]:
    """Yield the lines of a corpus from line `first` (from 0) on, again and again."""
    while True:
        yield from itertools.islice(read_lines(corpus), first, None)
        first = 0
