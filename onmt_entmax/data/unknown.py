"""Count the tokens of texts that training never saw, and warn about them.

If the vocabulary lacks a token, the model reads `<unk>` in its place. What is then proved of an
output holds for the source with `<unk>`, not for the one that the user meant. A model of several
languages may know a token, but never have seen it in the language of the source, such as a letter
of another script; its outputs for such a source are guesses.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.data.token_names import UnseenToken, most_frequent, unseen_text
from onmt_entmax.errors import counted

_LISTED = 20  # tokens that a summary lists
# Percent of unknown tokens above which a warning asks whether the text is the right one.
_MOST_TEXT = 50


@dataclass
class UnknownTokens:
    """Counts of the tokens of some texts, and of those that training never saw.

    Attributes:
        texts: number of texts.
        affected: number of texts with tokens that are not in the vocabulary.
        tokens: number of all tokens.
        counts: how often each token occurs that is not in the vocabulary.
        unseen: how often each token occurs that training did not see in its language.
    """

    texts: int = 0
    affected: int = 0
    tokens: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    unseen: Counter[UnseenToken] = field(default_factory=Counter)

    def add(
        self,
        tokens: int,
        unknown: Iterable[str] | Mapping[str, int],
        unseen: Iterable[UnseenToken] | Mapping[UnseenToken, int] = (),
    ) -> None:
        """Count a text.

        Args:
            tokens: number of its tokens.
            unknown: its tokens that are not in the vocabulary; or each of them with its count.
            unseen: its tokens that training did not see in their language; or each with its count.
        """
        self.texts += 1
        self.unseen.update(unseen)
        self.tokens += tokens
        if unknown:
            self.affected += 1
            self.counts.update(unknown)

    @property
    def percent(self) -> float:
        """Share of unknown tokens in percent; 100 if a report does not count the known ones."""
        unknown = self.counts.total()
        return 100 * unknown / max(self.tokens, unknown, 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for a summary, with the most frequent unknown tokens."""
        return {
            "source_tokens": self.tokens,
            "unknown_tokens": self.counts.total(),
            "unknown_percent": round(self.percent, 2),
            "unknown_sentences": self.affected,
            "unknown": dict(self.counts.most_common(_LISTED)),
            "unseen_tokens": self.unseen.total(),
        }

    def warnings(self, side: str = "source") -> list[str]:
        """Return a line on unknown tokens and one on those unseen in their language, if any.

        Args:
            side: `source` or `target`, whose tokens were counted.
        """
        lines = []
        if self.counts:
            lines.append(self._unknown_warning(side))
        if self.unseen:
            number = f"{self.unseen.total():,} of {counted(self.tokens, 'source token')}"
            lines.append(f"{number} {unseen_text(self.unseen)}")
        return lines

    def _unknown_warning(self, side: str) -> str:
        """Return the line on unknown tokens; see `warnings`."""
        unknown = self.counts.total()
        share = f"{unknown:,} of {counted(self.tokens, f'{side} token')} ({self.percent:.2f} %)"
        where = f", in {self.affected:,} of {self.texts:,} lines," if self.texts > 1 else ""
        effect = "the model reads <unk> instead of" if side == "source" else "no output has"
        question = ""
        if self.percent > _MOST_TEXT:
            question = "; is the text in the language and the tokens of the training data?"
        tokens = most_frequent(self.counts)
        return f"{share}{where} not in the {side} vocabulary: {effect} {tokens}{question}"
