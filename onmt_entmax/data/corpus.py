"""Parallel corpora: text files, read and transformed as OpenNMT-py does."""

from __future__ import annotations

import functools
import itertools
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.config import CorpusConfig, DataConfig
from onmt_entmax.data.batch import Example
from onmt_entmax.data.inflection import is_language
from onmt_entmax.data.transforms import build_transforms, with_seed
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import count_lines
from onmt_entmax.opennmt import ParallelCorpus, TransformPipe

VALID = "valid"  # the corpus of this name is the development set, as in OpenNMT-py


class CorpusError(UserError):
    """A corpus that cannot be read; the message names the file and line."""


Pair = tuple[list[str], list[str]]

# Lines read under one seed when tokens are counted.
_CHUNK = 1 << 14


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


def extra_specials(data: DataConfig) -> tuple[list[str], list[str]]:
    """Return the special tokens that the transforms add to source and target.

    They are sorted, because the vocabularies of several processes must agree.
    """
    source: set[str] = set()
    target: set[str] = set()
    for corpus in data.corpora:
        for transform in build_pipe(corpus, data).transforms:
            more_source, more_target = transform.get_specials(transform.opts)
            source |= more_source
            target |= more_target
    return sorted(source), sorted(target)


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
        _empty_line(line, data.skip_empty_level)
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


def read_pairs(
    corpus: CorpusConfig,
    data: DataConfig,
    is_train: bool,
    vocabularies: Vocabularies | None = None,
) -> Iterator[Pair]:
    """Yield the pairs of one corpus, in order; see `read_lines` and `pair_of`."""
    pipe = build_pipe(corpus, data, vocabularies)
    for line in read_lines(corpus):
        pair = pair_of(line, pipe, data, is_train)
        if pair is not None:
            yield pair


def all_pairs(data: DataConfig) -> Iterator[Pair]:
    """Yield every training pair once, to count tokens; random transforms use the seed.

    Raises:
        CorpusError: a corpus has no pair.
    """
    for corpus in data.corpora:
        pipe, lines, found = build_pipe(corpus, data), read_lines(corpus), False
        for number in itertools.count():
            some = list(itertools.islice(lines, _CHUNK))
            if not some:
                break
            read = functools.partial(_pairs_of, some, pipe, data)
            for pair in with_seed(f"{data.seed}/{corpus.name}/{number}", read):
                found = True
                yield pair
        if not found:
            raise CorpusError(
                f"corpus {corpus.name!r}: no pair is left after transforms and filters"
            )


def tokens_by_language(data: DataConfig) -> dict[str, set[str]]:
    """Return the source tokens of each language; nothing unless every source begins with one.

    Raises:
        CorpusError: a corpus has no pair.
    """
    found: dict[str, set[str]] = {}
    for (language, *tokens), _ in all_pairs(data):
        if not is_language(language):
            return {}
        found.setdefault(language, set()).update(tokens)
    return found


def _pairs_of(lines: Sequence[Line], pipe: TransformPipe, data: DataConfig) -> list[Pair]:
    pairs = (pair_of(line, pipe, data, is_train=True) for line in lines)
    return [pair for pair in pairs if pair is not None]


def _empty_line(line: Line, level: str) -> None:
    corpus = line.corpus
    message = f"{corpus.path_src}, {corpus.path_tgt}: line {line.number} is empty on one side"
    if level == "error":
        raise CorpusError(f"{message} (skip_empty_level: error)")
    if level == "warning":
        warnings.warn(f"{message}; the pair is skipped", stacklevel=2)


def check_corpus(corpus: CorpusConfig) -> None:
    """Refuse a corpus whose files are missing, empty or of different length.

    OpenNMT-py silently stops at the end of the shorter file.

    Raises:
        CorpusError: names the files and their numbers of lines.
    """
    source, target = (count_lines(Path(path)) for path in (corpus.path_src, corpus.path_tgt))
    if source != target:
        raise CorpusError(
            f"corpus {corpus.name!r}: {corpus.path_src} has {counted(source, 'line')} and "
            f"{corpus.path_tgt} has {target:,}; they must correspond line by line"
        )
    if source == 0:
        raise CorpusError(f"corpus {corpus.name!r}: {corpus.path_src} is empty")


def numericalise(pair: Pair, vocabularies: Vocabularies, index: int) -> Example:
    """Return the token ids of a pair."""
    source, target = pair
    return Example(vocabularies.source.encode(source), vocabularies.target.encode(target), index)


def validation_pairs(config: DataConfig, vocabularies: Vocabularies) -> list[Pair]:
    """Return the pairs of the development set that the filters keep."""
    assert config.valid is not None, "only called with a development set"
    return list(read_pairs(config.valid, config, False, vocabularies))


def validation_targets(
    pairs: Sequence[Pair], config: DataConfig, vocabularies: Vocabularies
) -> tuple[list[str], Callable[[Sequence[int]], str]]:
    """Return the references of `validation_pairs` as text, and a function from ids to text.

    References pass through the transforms and back, so that an irreversible change, such as
    lower-casing, is not counted as an error of the model.
    """
    assert config.valid is not None, "only called with a development set"
    pipe = build_pipe(config.valid, config, vocabularies)

    def to_text(output: Sequence[int]) -> str:
        text: str = pipe.apply_reverse(" ".join(vocabularies.target.decode(output)))
        return text

    return [pipe.apply_reverse(" ".join(target)) for _, target in pairs], to_text
