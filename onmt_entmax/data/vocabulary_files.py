"""Build the vocabularies of a new model from vocabulary files, or from the counts of its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeGuard

from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    Vocabularies,
    Vocabulary,
    VocabularyError,
)
from onmt_entmax.files import read_lines

# Count of the first token of a file without counts; each further token has one less. So the counts
# keep the order of the file, and all are above any minimum frequency.
_FIRST_COUNT = 1 << 62


def read_counts(path: str) -> Counter[str]:
    """Read the token counts of a vocabulary file, as `onmt_build_vocab` writes it.

    A line is a token, or a token and its count. Without counts, the order of the file is kept and
    no token is too rare.

    Raises:
        VocabularyError: a line has another form, a token occurs twice, or the file is empty.
    """
    lines = enumerate(read_lines(Path(path)), 1)
    rows = [(number, line.split()) for number, line in lines if line.strip()]
    if not rows:
        raise VocabularyError(f"{path}: the vocabulary file is empty")
    _, first_columns = rows[0]
    has_counts = len(first_columns) == 2
    counts: Counter[str] = Counter()
    for position, (number, columns) in enumerate(rows):
        if has_counts and not (len(columns) == 2 and columns[1].isdecimal()):
            raise VocabularyError(f"{path}: line {number}: expected a token and its count")
        if not has_counts and len(columns) != 1:
            raise VocabularyError(f"{path}: line {number}: expected one token")
        token = columns[0]
        if token in counts:
            raise VocabularyError(f"{path}: line {number}: {token!r} is there twice")
        counts[token] = int(columns[1]) if has_counts else _FIRST_COUNT - position
    return counts


def build_vocabularies(
    config: VocabularyConfig,
    count_all: Callable[[], tuple[Counter[str], Counter[str]]],
    extra: tuple[Iterable[str], Iterable[str]] = ((), ()),
) -> tuple[Vocabularies, dict[Path, str]]:
    """Read the vocabulary files; count tokens for files that do not exist.

    With `share_vocab`, both sides have one vocabulary, with the source's options.

    Args:
        config: files and sizes.
        count_all: returns the counts of source and target tokens; called if a file does not exist.
        extra: special tokens that transforms add to source and target.

    Returns:
        The vocabularies, and the text of each named file that does not exist. Write it only when
        the run is known to work, because later runs will read it.

    Raises:
        VocabularyError: a file cannot be used, or could not be written.
    """
    source_side = _Side(
        config.src_vocab,
        _distinct(*SOURCE_SPECIALS, *extra[0]),
        max_size=config.src_vocab_size,
        min_frequency=config.src_words_min_frequency,
        size_multiple=config.vocab_size_multiple,
    )
    if config.share_vocab:
        both = source_side._replace(specials=_distinct(*TARGET_SPECIALS, *extra[0], *extra[1]))
        return _build_shared(both, config.tgt_vocab, count_all)
    target_side = _Side(
        config.tgt_vocab,
        _distinct(*TARGET_SPECIALS, *extra[1]),
        max_size=config.tgt_vocab_size,
        min_frequency=config.tgt_words_min_frequency,
        size_multiple=config.vocab_size_multiple,
    )
    have_files = _is_there(source_side.path) and _is_there(target_side.path)
    of_source, of_target = (Counter[str](), Counter[str]()) if have_files else count_all()
    new_files = _new_file(source_side.path, of_source) | _new_file(target_side.path, of_target)
    source = source_side.vocabulary(_counts_of(source_side.path, of_source))
    target = target_side.vocabulary(_counts_of(target_side.path, of_target))
    return Vocabularies(source, target), new_files


class _Side(NamedTuple):
    """The options of one vocabulary.

    Attributes:
        path: the path of its file, which need not exist; None: no file is named.
        specials: tokens that come first.
        max_size: see `Vocabulary.from_counts`, as for the next two.
        min_frequency: likewise.
        size_multiple: likewise.
    """

    path: str | None
    specials: Sequence[str]
    max_size: int
    min_frequency: int
    size_multiple: int

    def vocabulary(self, counts: Counter[str]) -> Vocabulary:
        """Return the vocabulary of tokens with these counts."""
        return Vocabulary.from_counts(
            counts, self.specials, self.max_size, self.min_frequency, self.size_multiple
        )


def _build_shared(
    side: _Side,
    second_path: str | None,
    count_all: Callable[[], tuple[Counter[str], Counter[str]]],
) -> tuple[Vocabularies, dict[Path, str]]:
    """Build one vocabulary for both sides.

    Args:
        side: its options.
        second_path: the path of another file, whose counts are added if it exists, as in
            OpenNMT-py.
        count_all: returns the counts of source and target tokens, whose sums take the place of the
            first file if that does not exist.

    Returns:
        As `build_vocabularies`.

    Raises:
        VocabularyError: a file cannot be used, or could not be written.
    """
    counted = Counter[str]()
    if not _is_there(side.path):
        source, target = count_all()
        counted = source + target
    new_files = _new_file(side.path, counted)
    counts = _counts_of(side.path, counted)
    if _is_there(second_path) and second_path != side.path:
        counts = counts + read_counts(second_path)
    shared = side.vocabulary(counts)
    return Vocabularies(shared, shared), new_files


def _is_there(path: str | None) -> TypeGuard[str]:
    """Tell whether a vocabulary file is named, and is a file."""
    return path is not None and Path(path).is_file()


def _counts_of(path: str | None, counted: Counter[str]) -> Counter[str]:
    """Return the counts of a vocabulary file if there is one, else those of the data.

    Raises:
        VocabularyError: the file cannot be used.
    """
    return read_counts(path) if _is_there(path) else counted


def _new_file(path: str | None, counted: Counter[str]) -> dict[Path, str]:
    """Return the text of a vocabulary file by its path; nothing if none is named, or it is there.

    Args:
        path: the path of the file.
        counted: the counts of the data, which it gets.

    Raises:
        VocabularyError: the file could not be read again.
    """
    if path is None or _is_there(path):
        return {}
    for token in counted:
        if len(token.split()) != 1:
            raise VocabularyError(
                f"{path}: not there yet, and cannot be written: a transform makes tokens with "
                f"spaces in them, such as {token!r}; fix it, or name no vocabulary file"
            )
    rows = counted.most_common()
    return {Path(path): "".join(f"{token}\t{count}\n" for token, count in rows)}


def _distinct(*tokens: str) -> tuple[str, ...]:
    """Return tokens in order, each once."""
    return tuple(dict.fromkeys(tokens))
