"""The first reading of a training's corpora: the pairs, their tokens, symbols that are not copied.

A corpus is read in chunks. The random numbers of a chunk's transforms depend on the chunk alone.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

from onmt_entmax.config import CorpusConfig, DataConfig
from onmt_entmax.data.corpus import CorpusError, Line, Pair, build_pipe, pair_of, read_lines
from onmt_entmax.data.language_tokens import LanguageTokens, tokens_by_language
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.strings.codec import Codec, frequent_symbols

_CHUNK = 1 << 14  # lines
T = TypeVar("T")


class Tokens(NamedTuple):
    """The tokens of a training's data."""

    counts: tuple[Counter[str], Counter[str]]
    """Of source and target."""
    languages: dict[str, LanguageTokens]
    """Empty unless every source begins with its language."""


def uncopied_symbols(config: DataConfig) -> frozenset[str]:
    """Return the source tokens that are frequent enough not to be copied."""
    sources = (
        source
        for corpus in config.corpora
        for chunk in _in_chunks(config, corpus, partial(_text_pair, config=config), _sources_of)
        for source in chunk
    )
    return frequent_symbols(sources, config.task, config.copy_frequency)


def keep_pairs(config: DataConfig, codec: Codec) -> tuple[NumberedPairs, Tokens]:
    """Return the pairs of all corpora, and their tokens.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    pairs = NumberedPairs()
    pair_of_line = partial(training_pair, config=config, codec=codec)
    for corpus in config.corpora:
        has_pairs = list(_in_chunks(config, corpus, pair_of_line, pairs.add))
        _refuse_empty(corpus, any(has_pairs))
    return pairs, Tokens(pairs.counts(), tokens_by_language(pairs) or {})


def count_tokens(config: DataConfig, codec: Codec) -> Tokens:
    """Return the tokens of all corpora, of which no more than a chunk is in memory.

    Raises:
        CorpusError: no pair of a corpus is left.
    """
    counts = Counter[str](), Counter[str]()
    languages: dict[str, LanguageTokens] = {}
    all_named = True  # whether every source begins with a language
    pair_of_line = partial(training_pair, config=config, codec=codec)
    for corpus in config.corpora:
        corpus_has_pairs = False
        for pairs in _in_chunks(config, corpus, pair_of_line, NumberedPairs.of):
            corpus_has_pairs = corpus_has_pairs or pairs.any_kept
            for total, more in zip(counts, pairs.counts(), strict=True):
                total.update(more)
            of_chunk = tokens_by_language(pairs)
            all_named = all_named and of_chunk is not None
            for language, tokens in (of_chunk or {}).items():
                so_far = languages.setdefault(language, LanguageTokens(set(), set()))
                so_far.source.update(tokens.source)
                so_far.target.update(tokens.target)
        _refuse_empty(corpus, corpus_has_pairs)
    return Tokens(counts, languages if all_named else {})


def training_pair(line: Line, pipe: Pipe, config: DataConfig, codec: Codec) -> Pair | None:
    """Return the network's tokens of a line; None if the pair is left out."""
    pair = _text_pair(line, pipe, config)
    if pair is None:
        return None
    source, target, _ = codec.encode(*pair)
    return source, target


def _text_pair(line: Line, pipe: Pipe, config: DataConfig) -> Pair | None:
    """Return the tokens of a line's texts; None if the pair is left out, see `pair_of`."""
    return pair_of(line, pipe, config, is_train=True)


def _in_chunks(
    config: DataConfig,
    corpus: CorpusConfig,
    pair_of_line: Callable[[Line, Pipe], Pair | None],
    read: Callable[[Iterable[Pair | None]], T],
) -> Iterator[T]:
    """Yield what a function returns for each chunk of a corpus.

    Args:
        config: seed, and options of transforms.
        corpus: whose lines are read.
        pair_of_line: applies the transforms.
        read: reads the pairs of a chunk.
    """
    pipe, lines = build_pipe(corpus, config), read_lines(corpus)
    for number in itertools.count():
        chunk = list(itertools.islice(lines, _CHUNK))
        if not chunk:
            return
        pairs = (pair_of_line(line, pipe) for line in chunk)
        yield with_seed(f"{config.seed}/{corpus.name}/{number}", partial(read, pairs))


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
