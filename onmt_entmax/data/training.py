"""All that a training reads: its corpora, checked and read once, and their vocabularies.

How often the corpora are read before the first update:

| what | when |
|---|---|
| lines are counted | always |
| symbols that are not copied | if the task copies and no source vocabulary exists |
| pairs, to keep them, with counts of tokens | if all epochs have the same ones, and they fit |
| counts of tokens alone | otherwise, if a vocabulary is missing or sources have languages |

Kept pairs serve all epochs. Others are read again in each epoch, bucket by bucket.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from onmt_entmax.config import CorpusConfig, DataConfig, VocabularyConfig
from onmt_entmax.data.buckets import ReadBucket, kept_buckets, read_buckets
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
from onmt_entmax.data.development import Development, read_development
from onmt_entmax.data.mixture import Mixture
from onmt_entmax.data.numbered import LanguageTokens, NumberedPairs, numbered
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.seen_tokens import with_seen_tokens
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


class _Tokens(NamedTuple):
    """The tokens of a training's data."""

    counts: tuple[Counter[str], Counter[str]]
    """Of source and target."""
    languages: dict[str, LanguageTokens]
    """Empty unless every source begins with its language."""


class TrainingData:
    """The data of a training.

    Nothing is cached on disk, so a changed file cannot leave stale data.

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
        counts: how often the data has each token of source and target; empty if pairs are not kept
            and sources have no languages.
        specials: tokens that transforms add to source and target.
        new_files: the text of each named vocabulary file that does not exist.
        sizes: number of lines of each corpus.
        epoch_size: number of lines of an epoch.

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
        self._mixture = Mixture(self.sizes, [corpus.weight for corpus in config.corpora])
        self.epoch_size = self._mixture.epoch_size
        if config.valid is not None:
            count_pairs(config.valid)  # which refuses files that do not fit
        self.specials = _specials(config)
        self.codec = self._codec(vocabulary, vocabularies)
        pairs = NumberedPairs() if self._can_be_kept() else None
        tokens = self._first_tokens(pairs)
        self.counts = (Counter(), Counter()) if tokens is None else tokens.counts
        languages = {} if tokens is None else tokens.languages
        self.languages = {name: of_language.source for name, of_language in languages.items()}
        if vocabularies is not None:
            unrecorded, self.new_files = vocabularies, dict[Path, str]()
        else:
            unrecorded, self.new_files = build_vocabularies(
                vocabulary, lambda: (tokens or self._count()).counts, self.specials
            )
        # With subwords, other tokens than those of training may write the same letters.
        has_subwords = not SUBWORDS.isdisjoint(self._transforms())
        self.vocabularies = with_seen_tokens(
            unrecorded, languages, targets=not has_subwords, continued=vocabularies is not None
        )
        self._pairs = None if pairs is None else pairs.encode(self.vocabularies)

    # --- vocabularies ---

    def _codec(self, vocabulary: VocabularyConfig, vocabularies: Vocabularies | None) -> Codec:
        """Return the codec of the task.

        Decoding copies what the source vocabulary lacks, so one that exists decides: that of the
        checkpoint, or that of a file. Otherwise the symbols of the data are counted.
        """
        task = self.config.task
        file = vocabulary.src_vocab
        if not task.copies:
            return Codec(task)
        if vocabularies is not None:
            return Codec.of_vocabulary(task, vocabularies.source)
        if file is not None and Path(file).is_file():
            return Codec.of_vocabulary(task, read_counts(file))
        return Codec(task, self._frequent_symbols())

    def _frequent_symbols(self) -> frozenset[str]:
        """Read every pair once; return the source tokens that are not copied."""
        sources = (
            source
            for corpus in self.config.corpora
            for chunk in self._in_chunks(corpus, self._text_pair, _sources_of)
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

    def _first_tokens(self, pairs: NumberedPairs | None) -> _Tokens | None:
        """Return the tokens of the data; None if only a missing vocabulary needs them.

        Args:
            pairs: receives all pairs, if they are to be kept.

        Raises:
            CorpusError: no pair of a corpus is left.
        """
        if pairs is not None:
            return self._keep(pairs)
        return self._count() if self._begins_with_language() else None

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
                    so_far = languages.setdefault(language, LanguageTokens(set(), set()))
                    so_far.source.update(tokens.source)
                    so_far.target.update(tokens.target)
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

    def _text_pair(self, line: Line, pipe: Pipe) -> Pair | None:
        """Return the tokens of a line's texts; None if the pair is left out, see `pair_of`."""
        return pair_of(line, pipe, self.config, is_train=True)

    def _training_pair(self, line: Line, pipe: Pipe) -> Pair | None:
        """Return the network's tokens of a line; None if the pair is left out."""
        pair = self._text_pair(line, pipe)
        if pair is None:
            return None
        source, target, _ = self.codec.encode(*pair)
        return source, target

    # --- lines ---

    def cells(self) -> Cells:
        """Return the cells of the languages; none unless every source begins with a language."""
        if not self.languages:
            return {}
        lines = itertools.chain.from_iterable(map(read_lines, self.config.corpora))
        return count_cells(line.source for line in lines)

    def lines(self) -> Iterator[Line]:
        """Yield the untransformed lines of the development set, or of the first corpus."""
        return read_lines(self.config.valid or self.config.corpora[0])

    def validation(self) -> Development:
        """Return the development set, of which there must be one."""
        valid = self.config.valid
        assert valid is not None, "only called with a development set"
        return read_development(valid, self.config, self.vocabularies)

    # --- epochs ---

    def mixed(self, epoch: int) -> Iterator[tuple[int, int]]:
        """Yield corpus and line, both from 0, of all pairs of an epoch; see `Mixture`."""
        return self._mixture.epoch(epoch)

    def buckets(self, epoch: int) -> Iterator[ReadBucket]:
        """Yield for each bucket of an epoch a function from a seed to its pairs."""
        size = self.config.bucket_size
        if self._pairs is not None:
            starts = [0, *itertools.accumulate(self.sizes)]
            order = (starts[number] + line for number, line in self.mixed(epoch))
            rows = np.fromiter(order, np.int64, self.epoch_size)
            return kept_buckets(self._pairs, rows, size)
        pipes = [
            build_pipe(corpus, self.config, self.vocabularies) for corpus in self.config.corpora
        ]
        return read_buckets(
            lines=self._read_epoch(epoch),
            count=self.epoch_size,
            size=size,
            pair_of=lambda number, line: self._training_pair(line, pipes[number]),
            vocabularies=self.vocabularies,
        )

    def _read_epoch(self, epoch: int) -> Iterator[tuple[int, Line]]:
        """Yield the lines of an epoch, each with the number of its corpus."""
        streams: dict[int, Iterator[Line]] = {}
        for number, line in self.mixed(epoch):
            if number not in streams:  # its first line of the epoch, from which it is read on
                streams[number] = endless_lines(self.config.corpora[number], line)
            yield number, next(streams[number])


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


def _sources_of(pairs: Iterable[Pair | None]) -> list[list[str]]:
    """Return the sources of pairs, without those that are left out."""
    return [pair[0] for pair in pairs if pair is not None]


def _refuse_empty(corpus: CorpusConfig, has_pairs: bool) -> None:
    """Refuse a corpus without pairs.

    Raises:
        CorpusError: names the corpus.
    """
    if not has_pairs:
        raise CorpusError(f"corpus {corpus.name!r}: no pair is left after transforms and filters")
