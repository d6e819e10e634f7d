"""Write tokens in messages: readable, shortened, the most frequent ones first."""

import unicodedata
from collections import Counter
from collections.abc import Mapping

from onmt_entmax.strings.marks import LANGUAGE

UnseenToken = tuple[str, str]
"""The token of a language, such as `lang=german`, and a token that training did not see in it"""

_NAMED = 8  # tokens that a message names
_LONGEST = 60  # characters of a token that a message shows
# Unicode's categories of marks, control characters and the like, and separators, by their first
# letter: alone, such characters have no width or no ink.
_INVISIBLE = "MCZ"


def readable(token: str) -> str:
    """Return a token for a message, cut if it is long.

    If its first character is invisible, its code points stand for it: `U+0301` for an accent.
    """
    text = token if len(token) <= _LONGEST else f"{token[:_LONGEST]}..."
    if text and unicodedata.category(text[0])[0] in _INVISIBLE:
        return " ".join(f"U+{ord(character):04X}" for character in text)
    return text


def most_frequent(tokens: Counter[str]) -> str:
    """Return the most frequent tokens with their counts, and the number of the others.

    An example is `'a' (2), 'b' and 3 more`.
    """
    names = [
        f"{readable(token)!r}" + (f" ({count:,})" if count > 1 else "")
        for token, count in tokens.most_common(_NAMED)
    ]
    rest = len(tokens) - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")


def unseen_text(unseen: Mapping[UnseenToken, int]) -> str:
    """Return which tokens training did not see in their language.

    An example is `not seen in training for german, dutch: 'b' (2), 'c'`.

    Args:
        unseen: how often each occurs; not empty.
    """
    languages = dict.fromkeys(language for language, _ in unseen)  # each once, in order
    names = [language.removeprefix(LANGUAGE) for language in languages]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    tokens: Counter[str] = Counter()
    for (_, token), count in unseen.items():
        tokens[token] += count
    return f"not seen in training for {', '.join(names[:_NAMED])}{more}: {most_frequent(tokens)}"
