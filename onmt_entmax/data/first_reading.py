"""The first reading of a training's corpora: the pairs, their tokens, symbols that are not copied.

A corpus is read in chunks. The random numbers of a chunk's transforms depend on the chunk alone.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from onmt_entmax.config import CorpusConfig, DataConfig
from onmt_entmax.data.corpus import (
    CorpusError,
    Line,
    Pair,
    TextPair,
    build_pipe,
    pair_of,
    read_lines,
)
from onmt_entmax.data.garbage import garbage_kept
from onmt_entmax.data.language_tokens import LanguageTokens, tokens_by_language
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.strings.codec import Codec, frequent_symbols

_CHUNK = 1 << 14  # lines
T = TypeVar("T")


class Tokens(NamedTuple):
    """The network's tokens of a training's data."""

    counts: tuple[Counter[str], Counter[str]]
    """Of source and target."""
    languages: dict[str, LanguageTokens]
    """Empty unless every source begins with its language."""


def uncopied_symbols(config: DataConfig) -> frozenset[str]:
    """Return the source tokens that are frequent enough not to be copied."""
    text_of_line = partial(_training_text, config=config)
    sources = (
        text.source
        for corpus in config.corpora
        for chunk in _corpus_chunks(config, corpus, text_of_line)
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
    for chunk in _chunks(config, codec):
        pairs.add(chunk)
    return pairs, Tokens(pairs.counts(), tokens_by_language(pairs) or {})


def count_tokens(config: DataConfig, codec: Codec) -> Tokens:
    """Return the tokens of all corpora, of which no more than a chunk is in memory.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    source_counts, target_counts = Counter[str](), Counter[str]()
    languages: dict[str, LanguageTokens] | None = {}
    for chunk in _chunks(config, codec):
        pairs = NumberedPairs.of(chunk)
        source_counts.update(pairs.source.counts())
        target_counts.update(pairs.target.counts())
        languages = _merged(languages, tokens_by_language(pairs))
    return Tokens((source_counts, target_counts), languages or {})


def _merged(
    first: dict[str, LanguageTokens] | None, second: dict[str, LanguageTokens] | None
) -> dict[str, LanguageTokens] | None:
    """Return the tokens of each language in either part of the data.

    Args:
        first: of a part, see `tokens_by_language`; its sets may be enlarged.
        second: of another part.

    Returns:
        None if a source of either part begins with no language.
    """
    if first is None or second is None:
        return None
    for language, tokens in second.items():
        merged = first.setdefault(language, tokens)
        merged.source.update(tokens.source)
        merged.target.update(tokens.target)
    return first


# --- pairs ---


def training_pair(line: Line, pipe: Pipe, config: DataConfig, codec: Codec) -> Pair | None:
    """Return the network's tokens of a line; None if the pair is left out."""
    text = _training_text(line, pipe, config)
    if text is None:
        return None
    source, target, _ = codec.encode(text.source, text.target)
    return source, target


def _training_text(line: Line, pipe: Pipe, config: DataConfig) -> TextPair | None:
    """Return the tokens of a line's texts; None if the pair is left out, see `pair_of`."""
    return pair_of(line, pipe, config, is_train=True)


def _chunks(config: DataConfig, codec: Codec) -> Iterator[list[Pair | None]]:
    """Yield the pairs of all corpora, a chunk at a time, with None for those that are left out.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    pair_of_line = partial(training_pair, config=config, codec=codec)
    for corpus in config.corpora:
        has_pairs = False
        for chunk in _corpus_chunks(config, corpus, pair_of_line):
            has_pairs = has_pairs or any(pair is not None for pair in chunk)
            yield chunk
        if not has_pairs:
            raise CorpusError(
                f"corpus {corpus.name!r}: no pair is left after transforms and filters"
            )


def _corpus_chunks(
    config: DataConfig, corpus: CorpusConfig, pair_of_line: Callable[[Line, Pipe], T]
) -> Iterator[list[T]]:
    """Yield what a function makes of the lines of a corpus, a chunk at a time.

    Args:
        config: seed, and options of transforms.
        corpus: whose lines are read.
        pair_of_line: applies the transforms, whose random numbers depend on the chunk.
    """
    pipe, lines = build_pipe(corpus, config), read_lines(corpus)
    for number in itertools.count():
        chunk = list(itertools.islice(lines, _CHUNK))
        if not chunk:
            return
        read = partial(_pairs_of, chunk, pipe, pair_of_line)
        yield with_seed(f"{config.seed}/{corpus.name}/{number}", read)


def _pairs_of(
    lines: Sequence[Line], pipe: Pipe, pair_of_line: Callable[[Line, Pipe], T]
) -> list[T]:
    """Return what a function makes of each line with the transforms of its corpus."""
    with garbage_kept():
        return [pair_of_line(line, pipe) for line in lines]
