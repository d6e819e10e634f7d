"""Marks are the tokens that stand for the language and the tags of a source.

`lang=` and `+` tell marks from units: the tag V is `+V`, the letter V is `V`.
"""

from onmt_entmax.strings.units import decode_symbol, escape

LANGUAGE = "lang="
TAG = "+"


def is_language(token: str) -> bool:
    """Return whether a source token is a language."""
    return token.startswith(LANGUAGE) and len(token) > len(LANGUAGE)


def is_tag(token: str) -> bool:
    """Return whether a source token is a tag; `+` alone is a character."""
    return token.startswith(TAG) and len(token) > len(TAG)


def encode_tag(tag: str) -> str:
    """Return the token of a tag."""
    return TAG + escape(tag)


def decode_tag(token: str) -> str:
    """Return the tag of a token, the inverse of `encode_tag`."""
    return decode_symbol(token.removeprefix(TAG))


def split_tags(text: str, separator: str = ";") -> tuple[str, ...]:
    """Return the tags of `N;NOM(PL;PSS(1,PL))`; what brackets enclose is one tag."""
    tags: list[str] = []
    for part in text.split(separator) if text else ():
        if tags and tags[-1].count("(") > tags[-1].count(")"):
            tags[-1] += separator + part
        else:
            tags.append(part)
    return tuple(tags)
