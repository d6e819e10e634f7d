"""The first reading of a training's corpora: the pairs, their tokens, symbols that are not copied.

A corpus is read in chunks. The random numbers of a chunk's transforms depend on the chunk alone.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

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
from onmt_entmax.data.language_tokens import LanguageTokens, tokens_by_language
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.strings.codec import Codec, frequent_symbols

_CHUNK = 1 << 14  # lines


class Tokens(NamedTuple):
    """The network's tokens of a training's data."""

    counts: tuple[Counter[str], Counter[str]]
    """Of source and target."""
    languages: dict[str, LanguageTokens]
    """Empty unless every source begins with its language."""


def uncopied_symbols(config: DataConfig) -> frozenset[str]:
    """Return the source tokens that are frequent enough not to be copied."""
    sources = (
        pair.source
        for corpus in config.corpora
        for chunk in _text_chunks(config, corpus)
        for pair in chunk
        if pair is not None
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
    return _encoded(pair_of(line, pipe, config, is_train=True), codec)


def _encoded(text: TextPair | None, codec: Codec) -> Pair | None:
    """Return the network's tokens of a pair; None if the pair is left out."""
    if text is None:
        return None
    source, target, _ = codec.encode(text.source, text.target)
    return source, target


def _chunks(config: DataConfig, codec: Codec) -> Iterator[list[Pair | None]]:
    """Yield the pairs of all corpora, a chunk at a time, with None for those that are left out.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    for corpus in config.corpora:
        has_pairs = False
        for texts in _text_chunks(config, corpus):
            has_pairs = has_pairs or any(text is not None for text in texts)
            yield [_encoded(text, codec) for text in texts]
        if not has_pairs:
            raise CorpusError(
                f"corpus {corpus.name!r}: no pair is left after transforms and filters"
            )


def _text_chunks(config: DataConfig, corpus: CorpusConfig) -> Iterator[list[TextPair | None]]:
    """Yield the texts of a corpus, a chunk at a time, with None for those that are left out."""
    pipe, lines = build_pipe(corpus, config), read_lines(corpus)
    for number in itertools.count():
        chunk = list(itertools.islice(lines, _CHUNK))
        if not chunk:
            return
        seed = f"{config.seed}/{corpus.name}/{number}"
        yield with_seed(seed, partial(_texts_of, chunk, pipe, config))


def _texts_of(lines: Sequence[Line], pipe: Pipe, config: DataConfig) -> list[TextPair | None]:
    """Return the texts of lines, with None for those that are left out; see `pair_of`."""
    return [pair_of(line, pipe, config, is_train=True) for line in lines]
