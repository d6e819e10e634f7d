"""Tokens that training never saw: which, and how many.

The model reads `<unk>` in the place of a token that its vocabulary does not have, so that what is
proven of an output holds for another input than the one that was meant. A model of several
languages knows tokens that it never saw in the language of the source, such as the letters of
another script; its outputs for them are guesses.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.errors import counted
from onmt_entmax.strings.task import LANGUAGE

_NAMED = 8  # tokens that a message names
_LONGEST = 60  # characters of a token that it shows


def readable(token: str) -> str:
    """Return a token for a message, cut if it is long; what has no width or ink by its number."""
    token = token if len(token) <= _LONGEST else f"{token[:_LONGEST]}..."
    alone = bool(token) and unicodedata.category(token[0])[0] in "MCZ"
    return " ".join(f"U+{ord(c):04X}" for c in token) if alone else token


@dataclass
class UnknownTokens:
    """Counts of the tokens of some texts, and of those that training never saw."""

    texts: int = 0
    affected: int = 0
    """Texts with tokens that are not in the vocabulary."""
    tokens: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """Of the tokens that are not in the vocabulary."""
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of the tokens that training did not see in their language, behind its token."""

    def add(
        self,
        tokens: int,
        unknown: Iterable[str] | Mapping[str, int],
        unseen: Iterable[tuple[str, str]] | Mapping[tuple[str, str], int] = (),
    ) -> None:
        """Count a text.

        Args:
            tokens: how many it has.
            unknown: those that are not in the vocabulary, or how often each occurs.
            unseen: those that training did not see in their language, behind its token, or how
                often each occurs.
        """
        self.unseen.update(unseen)
        self.texts += 1
        self.tokens += tokens
        if unknown:
            self.affected += 1
            self.counts.update(unknown)

    @property
    def percent(self) -> float:
        """Share of all tokens, in percent; 100 if nobody counted the others."""
        unknown = self.counts.total()
        return 100 * unknown / max(self.tokens, unknown, 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for a summary, with the most frequent unknown tokens."""
        return {
            "source_tokens": self.tokens,
            "unknown_tokens": self.counts.total(),
            "unknown_percent": round(self.percent, 2),
            "unknown_sentences": self.affected,
            "unknown": dict(self.counts.most_common(20)),
            "unseen_tokens": self.unseen.total(),
        }

    def warnings(self, side: str = "source") -> list[str]:
        """Return a line on unknown tokens and one on those unseen in their language, if any."""
        lines = []
        if self.counts:
            where = f", in {self.affected:,} of {self.texts:,} lines," if self.texts > 1 else ""
            read = "the model reads <unk> instead of" if side == "source" else "no output has"
            most = "; is the text in the language and the tokens of the training data?"
            lines.append(
                f"{self.counts.total():,} of {counted(self.tokens, f'{side} token')} "
                f"({self.percent:.2f} %){where} not in the {side} vocabulary: {read} "
                f"{named(self.counts)}{most if self.percent > 50 else ''}"
            )
        if self.unseen:
            number = f"{self.unseen.total():,} of {counted(self.tokens, 'source token')}"
            lines.append(f"{number} {unseen_text(self.unseen)}")
        return lines


def unseen_text(unseen: Mapping[tuple[str, str], int]) -> str:
    """Return which tokens training did not see in their language.

    `unseen`, not empty, is the number of each pair of a language and a token.
    """
    names = [name.removeprefix(LANGUAGE) for name in dict.fromkeys(name for name, _ in unseen)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    tokens: Counter[str] = Counter()
    for (_, token), count in unseen.items():
        tokens[token] += count
    return f"not seen in training for {', '.join(names[:_NAMED])}{more}: {named(tokens)}"


def named(tokens: Counter[str]) -> str:
    """Return the most frequent tokens with their counts, and the number of the others."""
    names = [
        f"{readable(token)!r}" + (f" ({count:,})" if count > 1 else "")
        for token, count in tokens.most_common(_NAMED)
    ]
    rest = len(tokens) - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")
