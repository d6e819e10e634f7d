"""Build the vocabularies of a new model from vocabulary files, or from the counts of its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeGuard

from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    TokenCounts,
    Vocabularies,
    Vocabulary,
)
from onmt_entmax.data.vocabulary_files import file_text, read_counts


class AddedTokens(NamedTuple):
    """The special tokens that transforms add to sources and to targets."""

    source: Sequence[str]
    target: Sequence[str]


_NOTHING_ADDED = AddedTokens((), ())


class NewVocabularies(NamedTuple):
    """The vocabularies of a new model, and their files.

    Attributes:
        vocabularies: the vocabularies of source and target.
        new_files: the text of each named file that does not exist. Write it only when the run is
            known to work, because later runs will read it.
    """

    vocabularies: Vocabularies
    new_files: dict[Path, str]


def build_vocabularies(
    config: VocabularyConfig,
    count_all: Callable[[], TokenCounts],
    added: AddedTokens = _NOTHING_ADDED,
) -> NewVocabularies:
    """Read the vocabulary files; count tokens for files that do not exist.

    With `share_vocab`, both sides have one vocabulary, with the source's options.

    Args:
        config: files and sizes.
        count_all: returns the counts of the data's tokens; called if a file does not exist.
        added: special tokens of transforms, which become part of the vocabularies.

    Raises:
        VocabularyError: a file cannot be used, or could not be written.
    """
    source = _Side(
        path=config.src_vocab,
        specials=_distinct(*SOURCE_SPECIALS, *added.source),
        max_size=config.src_vocab_size,
        min_frequency=config.src_words_min_frequency,
        size_multiple=config.vocab_size_multiple,
    )
    if config.share_vocab:
        both = source._replace(specials=_distinct(*TARGET_SPECIALS, *added.source, *added.target))
        return _build_shared(both, config.tgt_vocab, count_all)
    target = _Side(
        path=config.tgt_vocab,
        specials=_distinct(*TARGET_SPECIALS, *added.target),
        max_size=config.tgt_vocab_size,
        min_frequency=config.tgt_words_min_frequency,
        size_multiple=config.vocab_size_multiple,
    )
    have_files = _is_there(source.path) and _is_there(target.path)
    data_counts = TokenCounts(Counter(), Counter()) if have_files else count_all()
    new_files = source.new_file(data_counts.source) | target.new_file(data_counts.target)
    vocabularies = Vocabularies(
        source.vocabulary(source.counts(data_counts.source)),
        target.vocabulary(target.counts(data_counts.target)),
    )
    return NewVocabularies(vocabularies, new_files)


def _build_shared(
    both: _Side,
    target_path: str | None,
    count_all: Callable[[], TokenCounts],
) -> NewVocabularies:
    """Build one vocabulary for both sides.

    Args:
        both: its options, with the file of the source.
        target_path: the file of the target, whose counts are added if it exists, as in OpenNMT-py.
        count_all: returns the counts of the data's tokens. The sums over both sides replace the
            file of the source if it does not exist.

    Raises:
        VocabularyError: a file cannot be used, or could not be written.
    """
    data_counts = Counter[str]()
    if not _is_there(both.path):
        source_counts, target_counts = count_all()
        data_counts = source_counts + target_counts
    new_files = both.new_file(data_counts)
    counts = both.counts(data_counts)
    if _is_there(target_path) and target_path != both.path:
        counts = counts + read_counts(target_path)
    vocabulary = both.vocabulary(counts)
    return NewVocabularies(Vocabularies(vocabulary, vocabulary), new_files)


class _Side(NamedTuple):
    """The options of one vocabulary.

    Attributes:
        path: the path of its file, which need not exist; None: no file is named.
        specials: tokens that come first.
        max_size: number of tokens besides the special ones.
        min_frequency: rarer tokens are left out.
        size_multiple: dummy tokens fill the vocabulary up to a multiple of this size.
    """

    path: str | None
    specials: Sequence[str]
    max_size: int
    min_frequency: int
    size_multiple: int

    def counts(self, data_counts: Counter[str]) -> Counter[str]:
        """Return the counts of the file if it exists, else those of the data.

        Raises:
            VocabularyError: the file cannot be used.
        """
        return read_counts(self.path) if _is_there(self.path) else data_counts

    def vocabulary(self, counts: Counter[str]) -> Vocabulary:
        """Return the vocabulary of tokens with these counts."""
        return Vocabulary.from_counts(
            counts, self.specials, self.max_size, self.min_frequency, self.size_multiple
        )

    def new_file(self, data_counts: Counter[str]) -> dict[Path, str]:
        """Return the text of the file by its path, if it is named and does not exist.

        Raises:
            VocabularyError: the file could not be read again.
        """
        if self.path is None or _is_there(self.path):
            return {}
        return {Path(self.path): file_text(self.path, data_counts)}


def _is_there(path: str | None) -> TypeGuard[str]:
    """Return whether a vocabulary file is named, and is a file."""
    return path is not None and Path(path).is_file()


def _distinct(*tokens: str) -> tuple[str, ...]:
    """Return tokens in order, each once."""
    return tuple(dict.fromkeys(tokens))
