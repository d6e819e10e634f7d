"""Join the tokens of Moses' tokeniser to text again, by the rules of its `detokenizer.perl`."""

import re

from onmt_entmax.data.parallel import unescape_moses

LANGUAGES = ("de", "en")

_BEFORE_A_WORD = re.compile(r"[($£€¥¢\[{¿¡]+")
_AFTER_A_WORD = re.compile(r"[,.?!:;\\%}\])]+")
_CONTRACTION = re.compile(r"'[^\W\d_]")  # English: 's, 'll
_QUOTES = re.compile("['\"„“”`]+")


def detokenize(line: str, language: str) -> str:
    """Return the tokens of a line, in one of `LANGUAGES`, as text.

    What the tokeniser changed for good (dashes, kinds of quotation marks) stays changed.
    """
    tokens = unescape_moses(re.sub(r" @([-/])@ ", r"\1", f" {line} ")).split()
    text, space = "", ""
    opened: dict[str, int] = {}
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else ""
        if _BEFORE_A_WORD.fullmatch(token):
            text, space = text + space + token, ""
        elif _AFTER_A_WORD.fullmatch(token) or (
            language == "en" and before[-1:].isalnum() and _CONTRACTION.match(token)
        ):
            text, space = text + token, " "
        elif _QUOTES.fullmatch(token):
            kind = '"' if set(token) <= set("„“”") else token
            plural = language == "en" and token == "'" and before.endswith("s")
            closes = plural or opened.get(kind, 0) % 2
            if not plural:
                opened[kind] = opened.get(kind, 0) + 1
            text, space = (text + token, " ") if closes else (text + space + token, "")
        else:
            text, space = text + space + token, " "
    return text
