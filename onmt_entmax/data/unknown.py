"""Count the tokens of texts that training never saw.

If the vocabulary lacks a token, the model reads `<unk>` in its place. What is then proved of an
output holds for the source with `<unk>`, not for the one that the user meant. A model of several
languages may know a token, but never have seen it in the language of the source, such as a letter
of another script; its outputs for such a source are guesses. `unknown_warnings.py` tells users.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.data.token_names import UnseenToken

_LISTED = 20  # tokens that a summary lists


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
        """Share of unknown tokens in percent, at most 100.

        A stranger's report may lack the number of all tokens, which is 0 then.
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
