"""The data of a training: its corpora, their vocabularies, and the pairs of each epoch.

The corpora are read up to three times before the first update:

| to | when |
|---|---|
| count lines | always |
| count source symbols: rare ones are copied | the task copies, and no source vocabulary exists |
| keep pairs in memory, and count their tokens | all epochs have the same pairs, and these fit |
| count tokens alone | otherwise, if a vocabulary is missing, or sources have languages |

Pairs that are kept serve all epochs. Other pairs are read again in each epoch, bucket by bucket.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import numpy as np

from onmt_entmax.config import DataConfig, VocabularyConfig
from onmt_entmax.data.buckets import ReadBucket, kept_buckets, read_buckets
from onmt_entmax.data.corpus import Line, build_pipe, count_pairs, endless_lines, read_lines
from onmt_entmax.data.development import Development, read_development
from onmt_entmax.data.first_reading import (
    Tokens,
    count_tokens,
    frequent_source_symbols,
    keep_pairs,
    training_pair,
)
from onmt_entmax.data.mixture import Mixture
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.seen_tokens import with_seen_tokens
from onmt_entmax.data.subwords import SUBWORDS
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.data.vocabulary_files import build_vocabularies, read_counts
from onmt_entmax.strings.cells import Cells, count_cells
from onmt_entmax.strings.codec import Codec
from onmt_entmax.strings.marks import is_language

MAX_BYTES = 1 << 30  # larger corpora are read again in every epoch
_FIXED_TRANSFORMS = {"filtertoolong", "prefix"}  # these draw no random numbers
VALID = "valid"  # the corpus of this name is the development set, as in OpenNMT-py


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
        source_tokens: the source tokens of each language; empty unless every source begins with
            its language.
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
        self.codec = _codec(config, vocabulary, vocabularies)
        pairs, tokens = _first_reading(config, self.codec)
        self.counts = tokens.counts if tokens else (Counter(), Counter())
        by_language = tokens.by_language if tokens else {}
        self.source_tokens = {language: seen.source for language, seen in by_language.items()}
        self.new_files: dict[Path, str] = {}
        is_continued = vocabularies is not None
        if vocabularies is None:
            vocabularies, self.new_files = build_vocabularies(
                vocabulary,
                lambda: (tokens or count_tokens(config, self.codec)).counts,
                self.specials,
            )
        # With subwords, other tokens than those of training may write the same letters.
        has_subwords = not SUBWORDS.isdisjoint(_transforms(config))
        self.vocabularies = with_seen_tokens(
            vocabularies, by_language, targets=not has_subwords, continued=is_continued
        )
        self._pairs = None if pairs is None else pairs.encode(self.vocabularies)

    def in_batches_of(self, config: DataConfig) -> TrainingData:
        """Return this data with other batches; nothing is read again.

        Args:
            config: differs from that of this data in its batches alone.
        """
        other = copy(self)
        other.config = config
        return other

    # --- lines ---

    def cells(self) -> Cells:
        """Return the cells of the languages; none unless every source begins with a language."""
        if not self.source_tokens:
            return {}
        lines = itertools.chain.from_iterable(map(read_lines, self.config.corpora))
        return count_cells(line.source for line in lines)

    def sample_lines(self) -> Iterator[Line]:
        """Yield untransformed lines: those of the development set, or else of the first corpus."""
        return read_lines(self.config.valid or self.config.corpora[0])

    def development_set(self) -> Development:
        """Return the development set, of which there must be one."""
        valid = self.config.valid
        assert valid is not None, "only called with a development set"
        return read_development(valid, self.config, self.vocabularies)

    # --- epochs ---

    def epoch_lines(self, epoch: int) -> Iterator[tuple[int, int]]:
        """Yield corpus and line, both from 0, of all pairs of an epoch; see `Mixture`."""
        return self._mixture.epoch(epoch)

    def buckets(self, epoch: int) -> Iterator[ReadBucket]:
        """Yield for each bucket of an epoch a function from a seed to its pairs."""
        config, codec = self.config, self.codec
        size = config.bucket_size
        if self._pairs is not None:
            starts = [0, *itertools.accumulate(self.sizes)]
            order = (starts[corpus] + line for corpus, line in self.epoch_lines(epoch))
            rows = np.fromiter(order, np.int64, self.epoch_size)
            return kept_buckets(self._pairs, rows, size)
        pipes = [build_pipe(corpus, config, self.vocabularies) for corpus in config.corpora]
        return read_buckets(
            lines=self._read_epoch(epoch),
            count=self.epoch_size,
            size=size,
            pair_of=lambda number, line: training_pair(line, pipes[number], config, codec),
            vocabularies=self.vocabularies,
        )

    def _read_epoch(self, epoch: int) -> Iterator[tuple[int, Line]]:
        """Yield the lines of an epoch, each with the number of its corpus."""
        streams: dict[int, Iterator[Line]] = {}
        for number, line in self.epoch_lines(epoch):
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


def _codec(
    config: DataConfig, vocabulary: VocabularyConfig, vocabularies: Vocabularies | None
) -> Codec:
    """Return the codec of the task.

    A task that copies copies the symbols that the source vocabulary lacks. If there is one, it
    decides which these are: the vocabulary of the checkpoint, or else that of the file. If there is
    none, symbols of fewer than `copy_frequency` sources are copied.
    """
    task, file = config.task, vocabulary.src_vocab
    if not task.copies:
        return Codec(task)
    if vocabularies is not None:
        return Codec.of_vocabulary(task, vocabularies.source)
    if file is not None and Path(file).is_file():
        return Codec.of_vocabulary(task, read_counts(file))
    return Codec(task, frequent_source_symbols(config))


def _first_reading(config: DataConfig, codec: Codec) -> tuple[NumberedPairs | None, Tokens | None]:
    """Read every pair once, if that is needed even where vocabularies exist.

    Returns:
        The pairs, if they are kept for all epochs; and the tokens, if they were counted.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    if _fits_in_memory(config) and _transforms(config) <= _FIXED_TRANSFORMS:
        return keep_pairs(config, codec)
    if _begins_with_language(config):
        return None, count_tokens(config, codec)
    return None, None


def _fits_in_memory(config: DataConfig) -> bool:
    """Return whether the files of all corpora are small enough to keep their pairs."""
    paths = {path for corpus in config.corpora for path in (corpus.path_src, corpus.path_tgt)}
    return sum(Path(path).stat().st_size for path in paths) <= MAX_BYTES


def _transforms(config: DataConfig) -> set[str]:
    """Return the names of the transforms of all corpora."""
    return {name for corpus in config.corpora for name in corpus.transforms}


def _begins_with_language(config: DataConfig) -> bool:
    """Return whether the first source begins with a language."""
    tokens = next(read_lines(config.corpora[0])).source.split()
    return bool(tokens) and is_language(tokens[0])
