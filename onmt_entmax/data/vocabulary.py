"""Vocabularies: the ordered tokens of source and target.

`vocabulary_building.py` builds them for a new training, `vocabulary_content.py` has their form in a
model folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from onmt_entmax.data.token_names import UnseenToken
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

    Args:
        tokens: the tokens of the text.
        where: file and line of the text, with which the error begins.

    Raises:
        UserError: names the symbol.
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
        ids = {token: index for index, token in enumerate(self.tokens)}
        if len(ids) < len(self.tokens):
            twice = next(token for token, count in Counter(self.tokens).items() if count > 1)
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

    def with_seen(
        self, tokens: Mapping[str, Iterable[str]], languages: Container[str]
    ) -> Vocabulary:
        """Return the vocabulary after a training that saw these tokens of each language.

        What an earlier training saw is kept, unless this one has no languages.

        Args:
            tokens: the tokens that it saw, by the token of their language; empty if there are no
                languages.
            languages: those to record; others are ignored.
        """
        if not tokens:
            return replace(self, seen={})
        seen = dict(self.seen)
        for language, language_tokens in tokens.items():
            if language in languages:
                known = frozenset(token for token in language_tokens if token in self)
                seen[language] = seen.get(language, frozenset()) | known
        return replace(self, seen=seen)

    def unseen(self, source: Sequence[str]) -> tuple[UnseenToken, ...]:
        """Return the tokens of a source that are known, but not from sources of its language.

        Args:
            source: tokens, of which the first may be a language.

        Returns:
            Each with its language; none if nothing is recorded of the language.
        """
        language = source[0] if source else ""
        if language not in self.seen:
            return ()
        seen = self.seen[language]
        return tuple(
            (language, token) for token in source[1:] if token in self and token not in seen
        )

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of `tokens`; unknown ones get the id of `<unk>`."""
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
            counts: how often each token occurs.
            specials: the special tokens, which come first.
            max_size: number of tokens besides the special ones. Of tokens with equal counts, those
                that are first in alphabetical order are kept.
            min_frequency: tokens with smaller counts are left out.
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


class TokenCounts(NamedTuple):
    """How often data has each token of its sources and of its targets."""

    source: Counter[str]
    target: Counter[str]


class Vocabularies(NamedTuple):
    """The vocabularies of both sides; with `share_vocab` they hold the same tokens."""

    source: Vocabulary
    target: Vocabulary
