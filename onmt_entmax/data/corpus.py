"""Parallel corpora: text files, read and transformed as OpenNMT-py does."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.config import CorpusConfig, DataConfig
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import count_lines
from onmt_entmax.opennmt import ParallelCorpus, TransformPipe

VALID = "valid"  # the corpus of this name is the development set, as in OpenNMT-py


class CorpusError(UserError):
    """A corpus that cannot be read; the message names the file and line."""


Pair = tuple[list[str], list[str]]


class Line(NamedTuple):
    """One line of the two files of a corpus, numbered from 1."""

    corpus: CorpusConfig
    number: int
    source: str
    target: str


def build_pipe(
    config: CorpusConfig, data: DataConfig, vocabularies: Vocabularies | None = None
) -> TransformPipe:
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
        CorpusError: a file is missing or not UTF-8.
    """
    number = 0
    try:
        for raw in ParallelCorpus(corpus.name, corpus.path_src, corpus.path_tgt).load():
            number += 1
            source, target = raw["src"], raw["tgt"]
            if number == 1:  # a byte order mark is not text
                source, target = source.removeprefix("\ufeff"), target.removeprefix("\ufeff")
            yield Line(corpus, number, source, target)
    except UnicodeDecodeError as error:
        files = f"{corpus.path_src} or {corpus.path_tgt}"
        raise CorpusError(
            f"{files}: line {number + 1} is not valid UTF-8 ({error.reason})"
        ) from None
    except OSError as error:
        raise CorpusError(f"{error.filename}: {error.strerror}") from None


def pair_of(line: Line, pipe: TransformPipe, data: DataConfig, is_train: bool) -> Pair | None:
    """Split, transform and truncate a line.

    Returns:
        The tokens of source and target; None if the line is empty on one side or a transform
        filters it out.

    Raises:
        CorpusError: the line is empty on one side, with `skip_empty_level: error`.
    """
    pair = {"src": line.source.split(), "tgt": line.target.split()}
    if not pair["src"] or not pair["tgt"]:
        corpus, level = line.corpus, data.skip_empty_level
        message = f"{corpus.path_src}, {corpus.path_tgt}: line {line.number} is empty on one side"
        if level == "error":
            raise CorpusError(f"{message} (skip_empty_level: error)")
        if level == "warning":
            warnings.warn(f"{message}; the pair is skipped", stacklevel=2)
        return None
    if not pipe.transforms:
        source, target = pair["src"], pair["tgt"]
        return source[: data.src_seq_length_trunc], target[: data.tgt_seq_length_trunc]
    pair |= {"src_original": pair["src"], "tgt_original": pair["tgt"]}
    transformed = pipe.apply(pair, is_train=is_train, corpus_name=line.corpus.name)
    if transformed is None or not transformed["src"] or not transformed["tgt"]:
        return None
    return (
        transformed["src"][: data.src_seq_length_trunc],
        transformed["tgt"][: data.tgt_seq_length_trunc],
    )


def count_pairs(corpus: CorpusConfig) -> int:
    """Return the number of lines of a corpus.

    OpenNMT-py silently stops at the end of the shorter file.

    Raises:
        CorpusError: a file is missing or empty, or their numbers of lines differ.
    """
    source, target = (count_lines(Path(path)) for path in (corpus.path_src, corpus.path_tgt))
    if source != target:
        raise CorpusError(
            f"corpus {corpus.name!r}: {corpus.path_src} has {counted(source, 'line')} and "
            f"{corpus.path_tgt} has {target:,}; they must correspond line by line"
        )
    if source == 0:
        raise CorpusError(f"corpus {corpus.name!r}: {corpus.path_src} is empty")
    return source
