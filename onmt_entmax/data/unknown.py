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
        texts_with_unknown: number of texts with a token that is not in the vocabulary.
        tokens: number of all tokens.
        unknown: how often each token occurs that is not in the vocabulary.
        unseen: how often each token occurs that training did not see in its language.
    """

    texts: int = 0
    texts_with_unknown: int = 0
    tokens: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
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
        unknown_in_text = Counter(unknown)
        self.texts += 1
        self.tokens += tokens
        self.unknown.update(unknown_in_text)
        self.unseen.update(unseen)
        if unknown_in_text:
            self.texts_with_unknown += 1

    @property
    def percent(self) -> float:
        """Share of unknown tokens in percent.

        The record of a report may lack the number of all tokens, which then is 0 here; the share
        is at most 100 all the same.
        """
        unknown = self.unknown.total()
        return 100 * unknown / max(self.tokens, unknown, 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for a summary, with the most frequent unknown tokens."""
        return {
            "source_tokens": self.tokens,
            "unknown_tokens": self.unknown.total(),
            "unknown_percent": round(self.percent, 2),
            "unknown_sentences": self.texts_with_unknown,
            "unknown": dict(self.unknown.most_common(_LISTED)),
            "unseen_tokens": self.unseen.total(),
        }

    def warnings(self, side: str = "source") -> list[str]:
        """Return a line on unknown tokens and one on those unseen in their language, if any.

        Args:
            side: `source` or `target`, whose tokens were counted.
        """
        lines = []
        if self.unknown:
            lines.append(self._unknown_warning(side))
        if self.unseen:
            tokens = counted(self.tokens, f"{side} token")
            lines.append(f"{self.unseen.total():,} of {tokens} {unseen_text(self.unseen)}")
        return lines

    def _unknown_warning(self, side: str) -> str:
        """Return the line on unknown tokens; see `warnings`."""
        unknown = self.unknown.total()
        share = f"{unknown:,} of {counted(self.tokens, f'{side} token')} ({self.percent:.2f} %)"
        where = ""
        if self.texts > 1:
            where = f", in {self.texts_with_unknown:,} of {self.texts:,} lines,"
        effect = "the model reads <unk> instead of" if side == "source" else "no output has"
        question = ""
        if self.percent > _MOST_TEXT:
            question = "; is the text in the language and the tokens of the training data?"
        tokens = most_frequent(self.unknown)
        return f"{share}{where} not in the {side} vocabulary: {effect} {tokens}{question}"
