"""Tokens that training never saw: which, how many, and the likely cause.

The model reads `<unk>` in the place of a token that its vocabulary does not have, so that what is
proven of an output holds for another input than the one that was meant. A model of several
languages knows tokens that it never saw in the language of the source, such as the letters of
another script; its outputs for them are guesses.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from onmt_entmax.data.inflection import LANGUAGE, is_language, is_tag
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabulary
from onmt_entmax.errors import counted

_NAMED = 8  # tokens that a message names
_LISTED = 20  # tokens that a summary lists
_MOST = 0.5  # share of the unknown tokens that a cause must explain
_FOREIGN = 0.01  # a script with a smaller share of a vocabulary's letters is not of its language
_SUBWORDS = 0.1  # share of tokens with a subword mark in a vocabulary of subwords
DECOMPOSED = "the letters' marks stand alone: normalise the text to Unicode's normal form NFC"
_MARKS = ("￭", "@@", "▁")  # of pyonmttok, subword-nmt and sentencepiece


def readable(token: str) -> str:
    """Return a token for a message; a combining mark by its number, as it has no width."""
    alone = bool(token) and unicodedata.category(token[0]).startswith("M")
    return " ".join(f"U+{ord(c):04X}" for c in token) if alone else token


@dataclass
class UnknownTokens:
    """Counts of the tokens of some texts, and of those that training never saw."""

    texts: int = 0
    affected: int = 0  # texts with tokens that are not in the vocabulary
    tokens: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # of those not in the vocabulary
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)  # with their language

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
            unseen: likewise those that training did not see in their language, behind its token.
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
            "unknown": dict(self.counts.most_common(_LISTED)),
            "unseen_tokens": self.unseen.total(),
        }

    def warnings(
        self, vocabulary: Vocabulary, side: str = "source", split: bool = False
    ) -> list[str]:
        """Return a line on unknown tokens and one on those unseen in their language, if any.

        Each names the tokens and the likely cause; `split`: a transform split them into subwords.
        """
        found = []
        if self.counts:
            number = f"{self.counts.total():,} of {counted(self.tokens, f'{side} token')}"
            where = f", in {self.affected:,} of {self.texts:,} lines," if self.texts > 1 else ""
            read = "the model reads <unk> instead of" if side == "source" else "no output has"
            cause = likely_cause(self.counts, vocabulary, split)
            if cause is None and self.percent > 100 * _MOST:
                cause = "is the text in the language and the tokens of the training data?"
            found.append(
                f"{number} ({self.percent:.2f} %){where} not in the {side} "
                f"vocabulary: {read} {_named(self.counts)}" + (f"; {cause}" if cause else "")
            )
        if self.unseen:
            number = f"{self.unseen.total():,} of {counted(self.tokens, 'source token')}"
            found.append(f"{number} {unseen_text(self.unseen, vocabulary)}")
        return found


def unseen_text(unseen: Mapping[tuple[str, str], int], vocabulary: Vocabulary) -> str:
    """Return which tokens training did not see in their language, with the likely cause.

    `unseen`, not empty, is the number of each pair of a language and a token.
    """
    names = [name.removeprefix(LANGUAGE) for name in dict.fromkeys(name for name, _ in unseen)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    tokens, cause = _without_language(unseen), unseen_cause(unseen, vocabulary)
    return (
        f"not seen in training for {', '.join(names[:_NAMED])}{more}: {_named(tokens)}"
        + (f"; {cause}" if cause else "")
    )  # fmt: skip


def unseen_cause(unseen: Mapping[tuple[str, str], int], vocabulary: Vocabulary) -> str | None:
    """Return `likely_cause` of tokens that training did not see in their language."""
    known = {token for language, _ in unseen for token in vocabulary.seen.get(language, ())}
    if not known:  # a report of another model
        return None
    ordered = dict.fromkeys((*SOURCE_SPECIALS, *sorted(known)))
    return likely_cause(_without_language(unseen), Vocabulary(tuple(ordered)))


def _without_language(unseen: Mapping[tuple[str, str], int]) -> Counter[str]:
    tokens: Counter[str] = Counter()
    for (_, token), count in unseen.items():
        tokens[token] += count
    return tokens


def _named(tokens: Counter[str]) -> str:
    """Return the most frequent tokens with their counts, and the number of the others."""
    names = [
        f"{readable(token)!r}" + (f" ({count:,})" if count > 1 else "")
        for token, count in tokens.most_common(_NAMED)
    ]
    rest = len(tokens) - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")


def likely_cause(
    unknown: Mapping[str, int], vocabulary: Vocabulary, split: bool = False
) -> str | None:
    """Return why most of some tokens are unknown, and what to do; None if nothing explains it.

    Args:
        unknown: number of each token that is not in `vocabulary`.
        vocabulary: of the model, on the side of the tokens.
        split: whether a transform split the text into subwords; a mark of one says so too.
    """
    total = sum(unknown.values())
    if not total:
        return None

    def explains(test: Callable[[str], bool]) -> bool:
        return sum(count for token, count in unknown.items() if test(token)) >= _MOST * total

    # A decomposed letter is two tokens in a text of characters, of which the mark is unknown.
    marks = {c for token in vocabulary.tokens for c in unicodedata.normalize("NFD", token)}
    if explains(lambda token: unicodedata.combining(token[0]) > 0 and marks.issuperset(token)):
        return DECOMPOSED
    for form in ("NFC", "NFD", "NFKC"):
        if explains(partial(_known_in, form, vocabulary)):
            return f"most are known in Unicode's normal form {form}: normalise the text"
    if explains(lambda token: token != token.lower() in vocabulary):
        return "most are known in lower case: write the text as the training data"
    known = _scripts({token: 1 for token in vocabulary.tokens if not _is_mark(token)})
    own = {script for script, count in known.items() if count > _FOREIGN * known.total()}
    if explains(lambda token: bool(_scripts({token: 1}).keys() - own)):
        foreign = Counter({s: n for s, n in _scripts(unknown).items() if s not in own})
        return f"most have {_first(foreign)} letters, the training data {_first(known)}"
    if split or any(map(_is_subword, unknown)):
        return None
    long = [token for token in vocabulary.tokens if len(token) > 1]
    subwords = sum(map(_is_subword, long))
    if subwords >= _SUBWORDS * len(vocabulary) and explains(lambda token: len(token) > 1):
        return "the model reads subwords: split the text as training did (translate: -transforms)"
    letters = sum(len(token) == 1 for token in vocabulary.tokens if token.isalpha())
    words = sum(token.isalpha() for token in long)
    if letters > words and explains(lambda t: len(t) > 1 and all(c in vocabulary for c in t)):
        return "the model reads characters: put a space between those of a word"
    if words > letters and explains(lambda token: len(token) == 1 and token.isalpha()):
        return "the model reads words: the text is split into characters"
    return None


def _is_subword(token: str) -> bool:
    return len(token) > 1 and (token.startswith(_MARKS) or token.endswith(_MARKS))


def _is_mark(token: str) -> bool:
    """Tell a special token, a language or a tag from text."""
    return token in TARGET_SPECIALS or is_language(token) or is_tag(token)


def _known_in(form: str, vocabulary: Vocabulary, token: str) -> bool:
    """Tell whether a token, or each of its characters, is known in another normal form."""
    other = unicodedata.normalize(form, token)  # type: ignore[arg-type]
    return other != token and (other in vocabulary or all(c in vocabulary for c in other))


def _scripts(tokens: Mapping[str, int]) -> Counter[str]:
    """Return the number of letters in each script, which is the first word of a letter's name."""
    letters: Counter[str] = Counter()
    for token, count in tokens.items():
        for character in token:
            letters[character] += count
    scripts: Counter[str] = Counter()
    for character, count in letters.items():
        if character.isalpha():
            scripts[unicodedata.name(character, "unnamed").split()[0]] += count
    return scripts


def _first(scripts: Counter[str]) -> str:
    return ", ".join(script for script, _ in scripts.most_common(3)) or "no"
