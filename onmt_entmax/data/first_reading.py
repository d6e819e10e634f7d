"""Read all pairs once before the first update, to keep them for all epochs or to count tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.config import DataConfig
from onmt_entmax.data.chunks import read_chunks
from onmt_entmax.data.corpus import (
    CorpusError,
    Line,
    NetworkPair,
    corpus_lines,
    text_pair,
    transform_names,
)
from onmt_entmax.data.language_tokens import LanguageTokens, tokens_by_language
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.data.vocabulary import TokenCounts
from onmt_entmax.strings.codec import Codec
from onmt_entmax.strings.marks import is_language

# The largest size of all files together whose pairs are kept, at 4 bytes a token; larger ones are
# read again in every epoch.
MAX_BYTES = 1 << 30
_FIXED_TRANSFORMS = {"filtertoolong", "prefix"}  # these draw no random numbers


class Tokens(NamedTuple):
    """The network's tokens of all pairs.

    Attributes:
        counts: how often each token occurs.
        by_language: the tokens of each language; empty unless every source begins with its
            language.
    """

    counts: TokenCounts
    by_language: Mapping[str, LanguageTokens]


class FirstReading(NamedTuple):
    """The result of reading the corpora before the first update.

    Attributes:
        pairs: the pairs of all corpora, if they serve all epochs.
        tokens: the tokens of these pairs; None if no pair was read.
    """

    pairs: NumberedPairs | None = None
    tokens: Tokens | None = None


def read_first(config: DataConfig, codec: Codec) -> FirstReading:
    """Read all pairs once, to keep them or to find out which tokens each language has.

    - If the transforms draw no random numbers and the files are small enough, pairs are kept.
    - Otherwise, if sources begin with languages, tokens alone are counted, as vocabularies record
      the tokens of each language.
    - Otherwise nothing is read here. `count_tokens` counts the tokens if a vocabulary is missing.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    if _fits_in_memory(config) and transform_names(config) <= _FIXED_TRANSFORMS:
        return _keep_pairs(config, codec)
    if _begins_with_language(config):
        return FirstReading(tokens=count_tokens(config, codec))
    return FirstReading()


def _fits_in_memory(config: DataConfig) -> bool:
    """Return whether the files of all corpora are small enough to keep their pairs."""
    paths = {path for corpus in config.corpora for path in (corpus.path_src, corpus.path_tgt)}
    return sum(Path(path).stat().st_size for path in paths) <= MAX_BYTES


def _begins_with_language(config: DataConfig) -> bool:
    """Return whether the first source that is not blank begins with a language."""
    sources = (line.source.split() for line in corpus_lines(config.corpora[0]))
    first: list[str] = next(filter(None, sources), [])
    return bool(first) and is_language(first[0])


def _keep_pairs(config: DataConfig, codec: Codec) -> FirstReading:
    """Return the pairs of all corpora, and their tokens.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    pairs = NumberedPairs()
    for chunk in _encoded_chunks(config, codec):
        pairs.add(chunk)
    return FirstReading(pairs, Tokens(pairs.counts(), tokens_by_language(pairs) or {}))


def count_tokens(config: DataConfig, codec: Codec) -> Tokens:
    """Return the tokens of all corpora, with no more than a chunk of their lines in memory.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    counts = TokenCounts(Counter(), Counter())
    by_language: dict[str, LanguageTokens] = {}
    all_have_language = True
    for chunk in _encoded_chunks(config, codec):
        pairs = NumberedPairs.of(chunk)
        counts.source.update(pairs.source.counts())
        counts.target.update(pairs.target.counts())
        of_chunk = tokens_by_language(pairs)
        if of_chunk is None:
            all_have_language = False
        else:
            _merge(by_language, of_chunk)
    return Tokens(counts, by_language if all_have_language else {})


def _merge(by_language: dict[str, LanguageTokens], more: Mapping[str, LanguageTokens]) -> None:
    """Add the tokens of further pairs to those of their languages, in place."""
    for language, tokens in more.items():
        merged = by_language.setdefault(language, LanguageTokens(set(), set()))
        merged.source.update(tokens.source)
        merged.target.update(tokens.target)


def _encoded_chunks(config: DataConfig, codec: Codec) -> Iterator[list[NetworkPair | None]]:
    """Yield the network's tokens of all corpora, a chunk of lines at a time.

    Yields:
        A pair for each line; None for a line that is left out.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    read = partial(training_pair, config=config, codec=codec)
    for corpus in config.corpora:
        has_pairs = False
        for chunk in read_chunks(corpus, config, read):
            has_pairs = has_pairs or any(pair is not None for pair in chunk)
            yield chunk
        if not has_pairs:
            raise CorpusError(
                f"corpus {corpus.name!r}: no pair is left after transforms and filters"
            )


def training_pair(line: Line, pipe: Pipe, config: DataConfig, codec: Codec) -> NetworkPair | None:
    """Return the network's tokens of a line of a training; None if the pair is left out.

    Args:
        line: a line of a corpus.
        pipe: the transforms of the corpus.
        config: see `text_pair`.
        codec: makes the network's tokens.
    """
    text = text_pair(line, pipe, config, is_train=True)
    if text is None:
        return None
    source, target, _ = codec.encode(text.source, text.target)
    return NetworkPair(source, target)
