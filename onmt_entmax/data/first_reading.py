"""Read the corpora of a training once before it begins: keep their pairs, or count their tokens.

A corpus is read in chunks. The random numbers of a chunk's transforms depend on the chunk alone.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from onmt_entmax.config import CorpusConfig, DataConfig
from onmt_entmax.data.corpus import (
    CorpusError,
    Line,
    Pair,
    build_pipe,
    pair_of,
    read_lines,
)
from onmt_entmax.data.garbage_collection import without_collections
from onmt_entmax.data.language_tokens import LanguageTokens, tokens_by_language
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.strings.codec import Codec, frequent_symbols

_CHUNK = 1 << 14  # lines
T = TypeVar("T")


class Tokens(NamedTuple):
    """The network's tokens of a training's data.

    Attributes:
        counts: how often sources and targets have each token.
        by_language: the tokens of each language; empty unless every source begins with its
            language.
    """

    counts: tuple[Counter[str], Counter[str]]
    by_language: dict[str, LanguageTokens]


def frequent_source_symbols(config: DataConfig) -> frozenset[str]:
    """Return the source tokens that are frequent enough not to be copied."""
    read = partial(pair_of, data=config, is_train=True)
    sources = (
        text.source
        for corpus in config.corpora
        for chunk in _chunks(config, corpus, read)
        for text in chunk
        if text is not None
    )
    return frequent_symbols(sources, config.task, config.copy_frequency)


def keep_pairs(config: DataConfig, codec: Codec) -> tuple[NumberedPairs, Tokens]:
    """Return the pairs of all corpora, and their tokens.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    pairs = NumberedPairs()
    for chunk in _encoded_chunks(config, codec):
        pairs.add(chunk)
    return pairs, Tokens(pairs.counts(), tokens_by_language(pairs) or {})


def count_tokens(config: DataConfig, codec: Codec) -> Tokens:
    """Return the tokens of all corpora, of which no more than a chunk is in memory.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    source_counts, target_counts = Counter[str](), Counter[str]()
    by_language: dict[str, LanguageTokens] = {}
    all_have_language = True
    for chunk in _encoded_chunks(config, codec):
        pairs = NumberedPairs.of(chunk)
        source_counts.update(pairs.source.counts())
        target_counts.update(pairs.target.counts())
        of_chunk = tokens_by_language(pairs)
        if of_chunk is None:
            all_have_language = False
        else:
            _merge(by_language, of_chunk)
    return Tokens((source_counts, target_counts), by_language if all_have_language else {})


def _merge(by_language: dict[str, LanguageTokens], more: Mapping[str, LanguageTokens]) -> None:
    """Add the tokens of further pairs to those of their languages, in place."""
    for language, tokens in more.items():
        merged = by_language.setdefault(language, LanguageTokens(set(), set()))
        merged.source.update(tokens.source)
        merged.target.update(tokens.target)


# --- pairs ---


def training_pair(line: Line, pipe: Pipe, config: DataConfig, codec: Codec) -> Pair | None:
    """Return the network's tokens of a line; None if the pair is left out."""
    text = pair_of(line, pipe, config, is_train=True)
    if text is None:
        return None
    source, target, _ = codec.encode(text.source, text.target)
    return source, target


def _encoded_chunks(config: DataConfig, codec: Codec) -> Iterator[list[Pair | None]]:
    """Yield the network's tokens of all corpora, a chunk of lines at a time.

    Yields:
        A pair for each line; None for a line that is left out.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    read = partial(training_pair, config=config, codec=codec)
    for corpus in config.corpora:
        has_pairs = False
        for chunk in _chunks(config, corpus, read):
            has_pairs = has_pairs or any(pair is not None for pair in chunk)
            yield chunk
        if not has_pairs:
            raise CorpusError(
                f"corpus {corpus.name!r}: no pair is left after transforms and filters"
            )


def _chunks(
    config: DataConfig, corpus: CorpusConfig, read: Callable[[Line, Pipe], T]
) -> Iterator[list[T]]:
    """Yield what `read` returns for the lines of a corpus, a chunk of lines at a time.

    Args:
        config: seed, and options of transforms.
        corpus: to read.
        read: applies the transforms of the corpus to a line.
    """
    pipe, lines = build_pipe(corpus, config), read_lines(corpus)

    def read_all(chunk: Sequence[Line]) -> list[T]:
        with without_collections():
            return [read(line, pipe) for line in chunk]

    for number in itertools.count():
        chunk = list(itertools.islice(lines, _CHUNK))
        if not chunk:
            return
        yield with_seed(f"{config.seed}/{corpus.name}/{number}", partial(read_all, chunk))
