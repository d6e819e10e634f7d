"""One corpus: the lines of two files, and the texts that transforms make of them."""

import itertools
import warnings
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from onmt_entmax import files
from onmt_entmax.config import CorpusConfig, DataConfig
from onmt_entmax.data.transforms import Pipe, TextPair, build_transforms
from onmt_entmax.data.vocabulary import STRUCTURAL, Vocabularies, refuse_symbols
from onmt_entmax.errors import UserError


class CorpusError(UserError):
    """A corpus that cannot be read; the message names the file and line."""


class NetworkPair(NamedTuple):
    """The network's tokens of source and target, which `Codec` makes of a `TextPair`."""

    source: list[str]
    target: list[str]


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

    Args:
        config: the corpus, which names them.
        data: the options of transforms; the transform `prefix` also reads those of all corpora.
        vocabularies: the vocabularies of the model. Without them, transforms that need them are
            left out, as in OpenNMT-py's `onmt_build_vocab`.

    Raises:
        TransformError: a transform cannot be built.
    """
    corpora = {corpus.name: asdict(corpus) for corpus in [*data.corpora, config]}
    options = Namespace(**data.transform_options, data=corpora)
    return build_transforms(config.transforms, options, vocabularies)


def transform_names(data: DataConfig) -> set[str]:
    """Return the names of the transforms of all corpora."""
    return {name for corpus in data.corpora for name in corpus.transforms}


def corpus_lines(corpus: CorpusConfig) -> Iterator[Line]:
    """Yield the untransformed lines of one corpus, in order.

    Raises:
        FileError: a file is missing or not UTF-8.
    """
    sides = (files.read_lines(Path(path)) for path in (corpus.path_src, corpus.path_tgt))
    for number, pair in enumerate(zip(*sides, strict=False), 1):
        yield Line(corpus, number, *pair)


def text_pair(line: Line, pipe: Pipe, data: DataConfig, is_train: bool) -> TextPair | None:
    """Split, transform and truncate a line.

    Args:
        line: a line of a corpus.
        pipe: the transforms of the corpus.
        data: what to do about empty lines, and how long a side may be.
        is_train: whether transforms may change texts at random.

    Returns:
        The pair; None if the line is empty on one side or a transform filters it out.

    Raises:
        CorpusError: the line is empty on one side, with `skip_empty_level: error`.
        UserError: a token is a symbol of the model's own.
    """
    if not line.source.split() or not line.target.split():
        _report_empty(line, data.skip_empty_level)
        return None
    pair = pipe.tokens(
        line.source, line.target, corpus=line.corpus.name, is_train=is_train, drop_empty=True
    )
    if pair is None:
        return None
    if not (STRUCTURAL.isdisjoint(pair.source) and STRUCTURAL.isdisjoint(pair.target)):
        for tokens, path in zip(pair, (line.corpus.path_src, line.corpus.path_tgt), strict=True):
            refuse_symbols(tokens, f"{path}: line {line.number}")
    return TextPair(
        pair.source[: data.src_seq_length_trunc], pair.target[: data.tgt_seq_length_trunc]
    )


def _report_empty(line: Line, level: str) -> None:
    """Refuse a line that is empty on one side, warn of it, or do nothing.

    Args:
        line: a line of a corpus.
        level: the option `skip_empty_level`: `error`, `warning` or `silent`.

    Raises:
        CorpusError: the level is `error`.
    """
    corpus = line.corpus
    message = f"{corpus.path_src}, {corpus.path_tgt}: line {line.number} is empty on one side"
    if level == "error":
        raise CorpusError(f"{message} (skip_empty_level: error)")
    if level == "warning":
        warnings.warn(f"{message}; the pair is skipped", stacklevel=3)


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


def endless_lines(corpus: CorpusConfig, first: int) -> Iterator[Line]:
    """Yield the lines of a corpus from line `first` (from 0) on, again and again."""
    while True:
        yield from itertools.islice(corpus_lines(corpus), first, None)
        first = 0
