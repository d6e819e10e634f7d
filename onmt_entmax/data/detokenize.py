"""Join the tokens of Moses' tokeniser to text again, by the rules of its `detokenizer.perl`."""

import re
from collections import Counter

from onmt_entmax.data.normalisation import unescape_moses

LANGUAGES = ("de", "en")

# Tokens without a space between them and the word after, or the word before: `( a )` is `(a)`.
_BEFORE_A_WORD = re.compile(r"[($£€¥¢\[{¿¡]+")
_AFTER_A_WORD = re.compile(r"[,.?!:;\\%}\])]+")
_CONTRACTION = re.compile(r"'[^\W\d_]")  # English: 's, 'll
_QUOTES = re.compile("['\"„“”`]+")


def detokenize(line: str, language: str) -> str:
    """Return the tokens of a line, in one of `LANGUAGES`, as text.

    What the tokeniser changed for good (dashes, kinds of quotation marks) stays changed.
    """
    tokens = unescape_moses(re.sub(r" @([-/])@ ", r"\1", f" {line} ")).split()
    quotes = _Quotes(language)
    text = ""
    space = ""  # between the text and the next token, unless the token is close to the text
    previous = ""
    for token in tokens:
        is_quote = _QUOTES.fullmatch(token) is not None
        if _BEFORE_A_WORD.fullmatch(token):
            close_to_previous, close_to_next = False, True
        elif _AFTER_A_WORD.fullmatch(token) or _is_contraction(token, previous, language):
            close_to_previous, close_to_next = True, False
        elif is_quote:
            close_to_previous = quotes.closes(token, previous)
            close_to_next = not close_to_previous
        else:
            close_to_previous, close_to_next = False, False
        text += token if close_to_previous else space + token
        space = "" if close_to_next else " "
        previous = token
    return text


def _is_contraction(token: str, previous: str, language: str) -> bool:
    """Return whether a token belongs to the word before, in English: `it 's` is `it's`.

    Args:
        token: a token.
        previous: the token before; empty for the first one.
        language: the language of both.
    """
    return bool(language == "en" and previous[-1:].isalnum() and _CONTRACTION.match(token))


class _Quotes:
    """Tells opening from closing quotation marks of a line: of each kind, every second one closes.

    Args:
        language: in English, an apostrophe after an s marks a plural: `the dogs ' tails`.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._counts: Counter[str] = Counter()

    def closes(self, token: str, previous: str) -> bool:
        """Return whether a quotation mark stands close to the word before; count it.

        Args:
            token: the mark.
            previous: the token before.
        """
        if self._language == "en" and token == "'" and previous.endswith("s"):
            return True
        kind = '"' if set(token) <= set("„“”") else token  # „ and “ are a pair
        closes = self._counts[kind] % 2 == 1
        self._counts[kind] += 1
        return closes
