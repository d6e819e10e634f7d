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
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from onmt_entmax.config import DataConfig, VocabularyConfig
from onmt_entmax.data.buckets import Bucket, kept_buckets, unread_buckets
from onmt_entmax.data.corpus import (
    Line,
    build_pipe,
    corpus_lines,
    count_pairs,
    endless_lines,
    transform_names,
)
from onmt_entmax.data.development import Development, read_development
from onmt_entmax.data.encoded import EncodedPairs
from onmt_entmax.data.first_reading import count_tokens, read_first, training_pair
from onmt_entmax.data.mixture import Mixture
from onmt_entmax.data.seen_tokens import with_seen_tokens
from onmt_entmax.data.subwords import SUBWORD_TRANSFORMS
from onmt_entmax.data.training_codec import training_codec
from onmt_entmax.data.vocabulary import TokenCounts, Vocabularies
from onmt_entmax.data.vocabulary_building import AddedTokens, build_vocabularies
from onmt_entmax.strings.cells import Cells, count_cells
from onmt_entmax.strings.codec import Codec

VALID = "valid"  # the corpus of this name is the development set, as in OpenNMT-py


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The data of a training; see `read`.

    Attributes:
        config: corpora and batches.
        sizes: number of lines of each corpus.
        codec: maps the tokens of texts, which `config.task` describes, to the network's. All other
            tokens here are the network's.
        vocabularies: the vocabularies of source and target, with the tokens of each language.
        specials: special tokens that transforms add to sources and targets.
        counts: how often the data has each token; empty if pairs are not kept and sources have no
            languages.
        source_tokens: the source tokens of each language; empty unless every source begins with
            its language.
        new_files: the text of each named vocabulary file that does not exist.
        pairs: the pairs of all corpora, if they serve all epochs; None if each epoch reads them
            again.
    """

    config: DataConfig
    sizes: Sequence[int]
    codec: Codec
    vocabularies: Vocabularies
    specials: AddedTokens
    counts: TokenCounts
    source_tokens: Mapping[str, Set[str]]
    new_files: Mapping[Path, str]
    pairs: EncodedPairs | None

    @classmethod
    def read(
        cls,
        config: DataConfig,
        vocabulary_config: VocabularyConfig,
        saved_vocabularies: Vocabularies | None = None,
    ) -> TrainingData:
        """Read the data of a training.

        Nothing is cached on disk, so a changed file cannot leave stale data.

        Args:
            config: corpora and batches.
            vocabulary_config: files and sizes of new vocabularies.
            saved_vocabularies: the vocabularies of a checkpoint to continue from. None: vocabulary
                files are read, and tokens are counted for those that do not exist.

        Raises:
            CorpusError: a corpus cannot be read or has no pair.
            VocabularyError: a vocabulary file cannot be used, or could not be written.
        """
        sizes = [count_pairs(corpus) for corpus in config.corpora]
        if config.valid is not None:
            count_pairs(config.valid)  # refuses files that do not fit
        specials = _specials(config)
        codec = training_codec(config, vocabulary_config, saved_vocabularies)
        pairs, tokens = read_first(config, codec)
        by_language = tokens.by_language if tokens else {}
        new_files: dict[Path, str] = {}
        if saved_vocabularies is not None:
            vocabularies = saved_vocabularies
        else:
            vocabularies, new_files = build_vocabularies(
                vocabulary_config,
                lambda: (tokens or count_tokens(config, codec)).counts,
                specials,
            )
        # With subwords, an output may have known letters in tokens that training did not see.
        has_subwords = not SUBWORD_TRANSFORMS.isdisjoint(transform_names(config))
        vocabularies = with_seen_tokens(
            vocabularies,
            by_language,
            records_targets=not has_subwords,
            is_continued=saved_vocabularies is not None,
        )
        return cls(
            config=config,
            sizes=sizes,
            codec=codec,
            vocabularies=vocabularies,
            specials=specials,
            counts=tokens.counts if tokens else TokenCounts(Counter(), Counter()),
            source_tokens={language: seen.source for language, seen in by_language.items()},
            new_files=new_files,
            pairs=None if pairs is None else pairs.encode(vocabularies),
        )

    def in_batches_of(self, config: DataConfig) -> TrainingData:
        """Return this data with other batches; nothing is read again.

        Args:
            config: differs from that of this data in its batches alone.
        """
        return replace(self, config=config)

    # --- lines ---

    def cells(self) -> Cells:
        """Return the cells of inflection; none unless every source begins with its language."""
        if not self.source_tokens:
            return {}
        lines = itertools.chain.from_iterable(map(corpus_lines, self.config.corpora))
        return count_cells(line.source for line in lines)

    def sample_lines(self) -> Iterator[Line]:
        """Yield untransformed lines: those of the development set, or else of the first corpus."""
        return corpus_lines(self.config.valid or self.config.corpora[0])

    def development_set(self) -> Development:
        """Read the development set; only for a configuration that has one."""
        valid = self.config.valid
        assert valid is not None, "the configuration has a development set"
        return read_development(valid, self.config, self.vocabularies)

    # --- epochs ---

    @cached_property
    def _mixture(self) -> Mixture:
        """The order of the lines of all corpora."""
        return Mixture(self.sizes, [corpus.weight for corpus in self.config.corpora])

    @property
    def epoch_size(self) -> int:
        """Number of lines of an epoch."""
        return self._mixture.epoch_size

    def epoch_lines(self, epoch: int) -> Iterator[tuple[int, int]]:
        """Yield corpus and line, both from 0, of all pairs of an epoch; see `Mixture`."""
        return self._mixture.epoch(epoch)

    def buckets(self, epoch: int) -> Iterator[Bucket]:
        """Yield the buckets of an epoch in order."""
        config, codec = self.config, self.codec
        size = config.bucket_size
        if self.pairs is not None:
            starts = [0, *itertools.accumulate(self.sizes)]
            order = (starts[corpus] + line for corpus, line in self.epoch_lines(epoch))
            rows = np.fromiter(order, np.int64, self.epoch_size)
            return kept_buckets(self.pairs, rows, size)
        pipes = [build_pipe(corpus, config, self.vocabularies) for corpus in config.corpora]
        return unread_buckets(
            lines=self._read_epoch(epoch),
            line_count=self.epoch_size,
            size=size,
            read_pair=lambda number, line: training_pair(line, pipes[number], config, codec),
            vocabularies=self.vocabularies,
        )

    def _read_epoch(self, epoch: int) -> Iterator[tuple[int, Line]]:
        """Yield the lines of an epoch, each with the number of its corpus."""
        streams: dict[int, Iterator[Line]] = {}
        for number, line in self.epoch_lines(epoch):
            if number not in streams:  # its first line of the epoch, from which it is read on
                streams[number] = endless_lines(self.config.corpora[number], line)
            yield number, next(streams[number])


def _specials(config: DataConfig) -> AddedTokens:
    """Return the special tokens that transforms add to sources and targets.

    They are sorted, because the vocabularies of several processes must agree.
    """
    added = [
        transform.get_specials(transform.opts)
        for corpus in config.corpora
        for transform in build_pipe(corpus, config).transforms
    ]
    return AddedTokens(
        sorted({token for source, _ in added for token in source}),
        sorted({token for _, target in added for token in target}),
    )
