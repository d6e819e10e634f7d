"""All that a training reads: its corpora, checked and read once, and their vocabularies."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from onmt_entmax.config import TARGET_SYMBOLS, CorpusConfig, DataConfig, VocabularyConfig
from onmt_entmax.data.batch import Integers
from onmt_entmax.data.corpus import (
    CorpusError,
    Line,
    Pair,
    build_pipe,
    count_pairs,
    endless_lines,
    pair_of,
    read_lines,
)
from onmt_entmax.data.numbered import EncodedPairs, LanguageTokens, NumberedPairs, numbered
from onmt_entmax.data.reader import EncodedSource, LanguageSymbols, Reader
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.subwords import SUBWORDS
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.data.vocabulary_files import build_vocabularies, read_counts
from onmt_entmax.strings.cells import Cells, count_cells
from onmt_entmax.strings.codec import Codec, frequent_symbols
from onmt_entmax.strings.task import is_language

MAX_BYTES = 1 << 30  # larger corpora are read again in every epoch
_FIXED_TRANSFORMS = {"filtertoolong", "prefix"}  # these draw no random numbers
_CHUNK = 1 << 14  # lines under one seed when tokens are counted
VALID = "valid"  # the corpus of this name is the development set, as in OpenNMT-py

T = TypeVar("T")
Bucket = tuple[EncodedPairs, Integers]
"""Pairs, and which of them are in a bucket"""


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


class _Tokens(NamedTuple):
    """The tokens of a training's data."""

    counts: tuple[Counter[str], Counter[str]]
    """Of source and target."""
    languages: dict[str, LanguageTokens]
    """Empty unless every source begins with its language."""


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
        self.specials = _specials(config)
        self.codec = self._codec(vocabulary, vocabularies)
        pairs = NumberedPairs() if self._can_be_kept() else None
        tokens: _Tokens | None = None
        if pairs is not None:
            tokens = self._keep(pairs)
        elif self._begins_with_language():
            tokens = self._count()
        self.counts = (Counter(), Counter()) if tokens is None else tokens.counts
        self.new_files: dict[Path, str] = {}
        continued = vocabularies is not None
        if vocabularies is None:
            vocabularies, self.new_files = build_vocabularies(
                vocabulary, lambda: (tokens or self._count()).counts, self.specials
            )
        languages = {} if tokens is None else tokens.languages
        self.languages = {name: of_language.source for name, of_language in languages.items()}
        self.vocabularies = self._with_languages(vocabularies, languages, continued)
        self._pairs = pairs.encode(self.vocabularies) if pairs is not None else None

    # --- vocabularies ---

    def _codec(self, vocabulary: VocabularyConfig, vocabularies: Vocabularies | None) -> Codec:
        """Return the codec of the task.

        Decoding copies what the source vocabulary lacks, so one that is there decides.
        """
        task, named = self.config.task, vocabulary.src_vocab
        if not task.copies:
            return Codec(task)
        if vocabularies is not None:
            return Codec.of_vocabulary(task, vocabularies.source)
        if named is not None and Path(named).is_file():
            return Codec.of_vocabulary(task, read_counts(named))
        return Codec(task, self._frequent_symbols())

    def _frequent_symbols(self) -> frozenset[str]:
        """Read every pair once; return the source tokens that are not copied."""

        def text_pair(line: Line, pipe: Pipe) -> Pair | None:
            return pair_of(line, pipe, self.config, is_train=True)

        def sources_of(pairs: Iterable[Pair | None]) -> list[list[str]]:
            return [pair[0] for pair in pairs if pair]

        sources = (
            source
            for corpus in self.config.corpora
            for chunk in self._in_chunks(corpus, text_pair, sources_of)
            for source in chunk
        )
        return frequent_symbols(sources, self.config.task, self.config.copy_frequency)

    def _can_be_kept(self) -> bool:
        """Tell whether all epochs have the same pairs, and memory has room for them."""
        corpora = self.config.corpora
        paths = {path for corpus in corpora for path in (corpus.path_src, corpus.path_tgt)}
        size = sum(Path(path).stat().st_size for path in paths)
        return size <= MAX_BYTES and self._transforms() <= _FIXED_TRANSFORMS

    def _transforms(self) -> set[str]:
        """Return the names of the transforms of all corpora."""
        return {name for corpus in self.config.corpora for name in corpus.transforms}

    def _begins_with_language(self) -> bool:
        """Tell whether the first source begins with a language."""
        tokens = next(read_lines(self.config.corpora[0])).source.split()
        return bool(tokens) and is_language(tokens[0])

    def _keep(self, pairs: NumberedPairs) -> _Tokens:
        """Read every pair once, and add it to `pairs`; return the tokens.

        Raises:
            CorpusError: no pair of a corpus is left.
        """
        for corpus in self.config.corpora:
            has_pairs = list(self._in_chunks(corpus, self._training_pair, pairs.add))
            _refuse_empty(corpus, any(has_pairs))
        return _Tokens(pairs.counts(), pairs.by_language() or {})

    def _count(self) -> _Tokens:
        """Read every pair once; return the tokens.

        Raises:
            CorpusError: no pair of a corpus is left.
        """
        counts = Counter[str](), Counter[str]()
        languages: dict[str, LanguageTokens] = {}
        all_named = True  # whether every source begins with a language
        for corpus in self.config.corpora:
            corpus_has_pairs = False
            for pairs, has_pairs in self._in_chunks(corpus, self._training_pair, numbered):
                corpus_has_pairs = corpus_has_pairs or has_pairs
                for total, more in zip(counts, pairs.counts(), strict=True):
                    total.update(more)
                of_chunk = pairs.by_language()
                all_named = all_named and of_chunk is not None
                for language, tokens in (of_chunk or {}).items():
                    known = languages.setdefault(language, LanguageTokens(set(), set()))
                    known.source.update(tokens.source)
                    known.target.update(tokens.target)
            _refuse_empty(corpus, corpus_has_pairs)
        return _Tokens(counts, languages if all_named else {})

    def _in_chunks(
        self,
        corpus: CorpusConfig,
        pair_of_line: Callable[[Line, Pipe], Pair | None],
        read: Callable[[Iterable[Pair | None]], T],
    ) -> Iterator[T]:
        """Yield what a function returns for each chunk of a corpus.

        Args:
            corpus: whose lines are read.
            pair_of_line: applies the transforms, whose random numbers depend on the chunk alone.
            read: reads the pairs of a chunk.
        """
        pipe, lines = build_pipe(corpus, self.config), read_lines(corpus)
        for number in itertools.count():
            chunk = list(itertools.islice(lines, _CHUNK))
            if not chunk:
                return
            pairs = (pair_of_line(line, pipe) for line in chunk)
            yield with_seed(f"{self.config.seed}/{corpus.name}/{number}", partial(read, pairs))

    def _training_pair(self, line: Line, pipe: Pipe) -> Pair | None:
        """Return the network's tokens of a line; None as `pair_of`."""
        pair = pair_of(line, pipe, self.config, is_train=True)
        return None if pair is None else self.codec.encode(*pair)[:2]

    def _with_languages(
        self, vocabularies: Vocabularies, languages: dict[str, LanguageTokens], continued: bool
    ) -> Vocabularies:
        """Return vocabularies that know the tokens of each language.

        Args:
            vocabularies: of source and target.
            languages: with the tokens that this training sees.
            continued: whether a training before this one made the vocabularies.
        """
        targets = {name: tokens.target for name, tokens in languages.items()}
        if not SUBWORDS.isdisjoint(self._transforms()):
            # Other subwords than those of training may write the same letters.
            targets = {}
        complete = _complete(vocabularies, languages, continued)
        return Vocabularies(
            vocabularies.source.seeing(self.languages, vocabularies.source),
            vocabularies.target.seeing(targets, complete),
        )

    # --- lines ---

    def cells(self) -> Cells:
        """Return the cells of the languages; none unless every source begins with a language."""
        if not self.languages:
            return {}
        return count_cells(line.source for each in self.config.corpora for line in read_lines(each))

    def lines(self) -> Iterator[Line]:
        """Yield the untransformed lines of the development set, or of the first corpus."""
        return read_lines(self.config.valid or self.config.corpora[0])

    def validation(self) -> Development:
        """Return the development set."""
        valid = self.config.valid
        assert valid is not None, "only called with a development set"
        pipe = build_pipe(valid, self.config, self.vocabularies)
        prefix = f"{valid.tgt_prefix or ''} " if "prefix" in valid.transforms else ""
        codec = Codec.of_vocabulary(self.config.task, self.vocabularies.source)
        seen = self.vocabularies.target.seen if TARGET_SYMBOLS == "language" else {}
        symbols = LanguageSymbols(seen) if seen else None  # as `translate` decodes
        reader = Reader(self.vocabularies, pipe, codec, symbols)
        development = Development([], [], [], reader)
        for line in read_lines(valid):
            pair = pair_of(line, pipe, self.config, is_train=False)
            if pair is not None:
                development.sources.append(reader.encode(pair[0], len(development.sources)))
                development.targets.append(reader.target_of(*pair))
                development.texts.append(prefix + line.target)
        return development

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
        """Return how many lines of each corpus an epoch has.

        Each turn reads `weight` lines of each corpus, in order. The epoch ends in the turn, and at
        the line, where the last corpus has been read completely; corpora behind that one have one
        turn less.
        """
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

    def buckets(self, epoch: int) -> Iterator[Callable[[str], Bucket]]:
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
            yield _whatever_seed((self._pairs, rows[begin : begin + size]))

    def _read_buckets(self, epoch: int) -> Iterator[Callable[[str], Bucket]]:
        """Yield what `buckets` does, from the files."""
        config = self.config
        pipes = [build_pipe(corpus, config, self.vocabularies) for corpus in config.corpora]
        lines = self._read_epoch(epoch)

        def read(seed: str) -> Bucket:
            pairs = (self._training_pair(line, pipes[corpus]) for corpus, line in bucket)
            read_pairs, _ = with_seed(seed, lambda: numbered(pairs))
            encoded = read_pairs.encode(self.vocabularies)
            return encoded, np.arange(len(encoded.kept))

        for _ in range(0, self.epoch_size, config.bucket_size):
            bucket = itertools.islice(lines, config.bucket_size)
            yield read
            for _line in bucket:  # lines that the caller did not read
                pass

    def _read_epoch(self, epoch: int) -> Iterator[tuple[int, Line]]:
        """Yield the lines of an epoch, each with the number of its corpus."""
        streams: dict[int, Iterator[Line]] = {}
        for corpus, first in self.mixed(epoch):
            if corpus not in streams:
                streams[corpus] = endless_lines(self.config.corpora[corpus], first)
            yield corpus, next(streams[corpus])


def _specials(config: DataConfig) -> tuple[list[str], list[str]]:
    """Return the tokens that transforms add to source and target.

    They are sorted, because the vocabularies of several processes must agree.
    """
    added = [
        transform.get_specials(transform.opts)
        for corpus in config.corpora
        for transform in build_pipe(corpus, config).transforms
    ]
    return (
        sorted({token for source, _ in added for token in source}),
        sorted({token for _, target in added for token in target}),
    )


def _refuse_empty(corpus: CorpusConfig, has_pairs: bool) -> None:
    """Refuse a corpus without pairs.

    Raises:
        CorpusError: names the corpus.
    """
    if not has_pairs:
        raise CorpusError(f"corpus {corpus.name!r}: no pair is left after transforms and filters")


def _whatever_seed(bucket: Bucket) -> Callable[[str], Bucket]:
    """Return a function that returns a bucket in which nothing is random."""
    return lambda _: bucket


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
