"""Vocabularies: ordered tokens of source and target, and their form in a model folder.

`vocabulary_files.py` builds them for a new training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import DefaultTokens
from onmt_entmax.rules import shown
from onmt_entmax.strings.units import STRUCTURAL

# The order in which OpenNMT-py 2.3.0 numbers its special tokens; its checkpoints rely on it.
SOURCE_SPECIALS = (DefaultTokens.UNK, DefaultTokens.PAD)
TARGET_SPECIALS = (DefaultTokens.UNK, DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS)


class VocabularyError(UserError):
    """A vocabulary file or list that cannot be used."""


def refuse_symbols(tokens: Iterable[str], where: str) -> None:
    """Refuse a text of training that has a symbol of the model's own.

    Raises:
        UserError: begins with `where`, the file and the line.
    """
    own = STRUCTURAL.intersection(tokens)
    if own:
        raise UserError(
            f"{where}: {min(own)!r} is a symbol of the model's own, which it adds where it needs "
            "it: remove it from the file"
        )


@dataclass(frozen=True)
class Vocabulary:
    """An ordered list of distinct tokens; the id of a token is its index.

    Attributes:
        tokens: the list.
        seen: the tokens that training saw on this side of each language, by the token of the
            language; empty if sources do not begin with one (see `strings/task.py`).

    Raises:
        VocabularyError: a token occurs twice, is empty or has white space, or `<unk>` or `<blank>`
            is missing.
    """

    tokens: tuple[str, ...]
    seen: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {token: i for i, token in enumerate(self.tokens)}
        if len(ids) < len(self.tokens):
            twice = next(token for token, n in Counter(self.tokens).items() if n > 1)
            raise VocabularyError(f"the token {shown(twice)} is in the vocabulary twice")
        for token in self.tokens:
            if token.split() != [token]:
                raise VocabularyError(
                    f"token {ids[token]} is {shown(token)}, but a token is not empty and has no "
                    "white space, or outputs could not be told apart"
                )
        for special in SOURCE_SPECIALS:
            if special not in ids:
                raise VocabularyError(f"the special token {special!r} is not in the vocabulary")
        object.__setattr__(self, "_ids", ids)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def unk(self) -> int:
        """Id of `<unk>`, for every unknown token."""
        return self._ids[DefaultTokens.UNK]

    @cached_property
    def pad(self) -> int:
        """Id of the padding token."""
        return self._ids[DefaultTokens.PAD]

    @cached_property
    def bos(self) -> int:
        """Id of the start symbol of a target."""
        return self._ids[DefaultTokens.BOS]

    @cached_property
    def eos(self) -> int:
        """Id of the end symbol of a target."""
        return self._ids[DefaultTokens.EOS]

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def can_write(self, token: str) -> bool:
        """Whether an output may contain `token`: known, and not padding, start or end symbol."""
        return token in self._ids and token not in STRUCTURAL

    def not_written(self, token: str) -> str:
        """Return why no output contains `token`, for an error."""
        if token in STRUCTURAL:
            return f"{token!r} is a symbol of the model's own, and no part of a text"
        return f"{token!r} is not in the target vocabulary"

    def seeing(self, tokens: Mapping[str, Iterable[str]], languages: Container[str]) -> Vocabulary:
        """Return the vocabulary after a training that saw these tokens of each language.

        What an earlier training saw is kept; without any languages, nothing is.

        Args:
            tokens: by the token of the language.
            languages: those that are recorded.
        """
        if not tokens:
            return replace(self, seen={})
        seen = dict(self.seen)
        for language, of_language in tokens.items():
            if language in languages:
                known = {token for token in of_language if token in self}
                seen[language] = frozenset(seen.get(language, ())) | known
        return replace(self, seen=seen)

    def unseen(self, source: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the tokens of a source that are known, but not from sources of its language.

        Each stands behind the token of the language. Empty if nothing is known of the language.
        """
        language = source[0] if source else ""
        if language not in self.seen:
            return ()
        seen = self.seen[language]
        return tuple((language, each) for each in source[1:] if each in self and each not in seen)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of `tokens`; that of `<unk>` for unknown ones."""
        unk = self.unk
        return [self._ids.get(token, unk) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of `ids`."""
        return [self.tokens[i] for i in ids]

    @classmethod
    def from_counts(
        cls,
        counts: Counter[str],
        specials: Sequence[str],
        max_size: int,
        min_frequency: int = 0,
        size_multiple: int = 1,
    ) -> Vocabulary:
        """Build a vocabulary of the special tokens and the most frequent ones, as OpenNMT-py does.

        Args:
            counts: of each token.
            specials: come first.
            max_size: number of tokens besides the special ones; of equal counts, the first in
                alphabetical order stay.
            min_frequency: drop tokens with smaller counts.
            size_multiple: dummy tokens fill the vocabulary up to a multiple of this size.
        """
        ranked = sorted(
            (token for token in counts if token not in specials),
            key=lambda token: (-counts[token], token),
        )
        frequent = [token for token in ranked if counts[token] >= max(min_frequency, 1)]
        tokens = [*specials, *frequent[:max_size]]
        missing = -len(tokens) % size_multiple
        tokens += [f"{DefaultTokens.VOCAB_PAD}{i}" for i in range(missing)]
        return cls(tuple(tokens))


class Vocabularies(NamedTuple):
    """The vocabularies of both sides; with `share_vocab` they hold the same tokens."""

    source: Vocabulary
    target: Vocabulary


def read_vocabularies(
    source: object, target: object, seen: object = None, seen_targets: object = None
) -> Vocabularies:
    """Return the vocabularies of the content of a file.

    Args:
        source: should be a list of tokens.
        target: should be a list of tokens.
        seen: should be None, or map languages to the tokens of their sources, between spaces.
        seen_targets: should be None, or map languages to the tokens of their targets.

    Raises:
        VocabularyError: names the part and what is wrong.
    """
    sides = []
    for side, tokens in (("source", source), ("target", target)):
        if not isinstance(tokens, list):
            raise VocabularyError(f"{side}: must be a list of tokens, not {shown(tokens)}")
        for token in tokens:
            if not isinstance(token, str):
                raise VocabularyError(f"{side}: {shown(token)} is no token, which is a string")
        try:
            sides.append(Vocabulary(tuple(tokens)))
        except VocabularyError as error:
            raise VocabularyError(f"{side}: {error}") from None
    first, second = sides
    for special in TARGET_SPECIALS:
        if special not in second:
            raise VocabularyError(f"target: the special token {special!r} is missing")
    if first == second:
        second = first
    if seen is not None:
        first = replace(first, seen=_read_seen("seen", seen, first, first, "source"))
    if seen_targets is not None:
        found = _read_seen("seen_targets", seen_targets, first, second, "target")
        second = replace(second, seen=found)
    return Vocabularies(first, second)


def _read_seen(
    name: str, content: object, source: Vocabulary, side: Vocabulary, side_name: str
) -> dict[str, frozenset[str]]:
    """Return the tokens of each language that a part of a file lists.

    Args:
        name: of the part.
        content: should map languages to tokens between spaces.
        source: has the languages.
        side: has the tokens.
        side_name: source or target.

    Raises:
        VocabularyError: names the part and what is wrong.
    """
    if not isinstance(content, dict) or not all(isinstance(t, str) for t in content.values()):
        raise VocabularyError(
            f"{name}: must map languages to tokens between spaces, not {shown(content)}"
        )
    found = {language: frozenset(text.split()) for language, text in content.items()}
    for language in found:
        if language not in source:
            raise VocabularyError(f"{name}: {shown(language)} is not in the source vocabulary")
    for token in chain(*map(sorted, found.values())):
        if token not in side:
            raise VocabularyError(f"{name}: {shown(token)} is not in the {side_name} vocabulary")
    return found


def as_content(vocabularies: Vocabularies) -> dict[str, object]:
    """Return what a file of vocabularies holds, which `read_vocabularies` reads."""
    content: dict[str, object] = {
        "source": vocabularies.source.tokens,
        "target": vocabularies.target.tokens,
    }
    for name, side in zip(("seen", "seen_targets"), vocabularies, strict=True):
        if side.seen:
            content[name] = {
                language: " ".join(sorted(tokens)) for language, tokens in sorted(side.seen.items())
            }
    return content
