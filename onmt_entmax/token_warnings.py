"""Warnings of source tokens that training had rarely or never, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from onmt_entmax.data.unknown import readable, unseen_text
from onmt_entmax.strings.marks import decode_tag, is_tag
from onmt_entmax.strings.tag_hints import tag_hint
from onmt_entmax.strings.units import CHARACTERS, Unit

# What people call one unit of a source.
_UNITS = {"characters": "character", "symbols": "symbol", "text": "word"}


def token_warnings(
    *,
    unknown: Iterable[str],
    copied: Iterable[str],
    unseen: Iterable[Sequence[tuple[str, str]]],
    unit: Unit,
    known_tags: Sequence[str],
) -> list[str]:
    """Return warnings of source tokens that training had rarely or never, each once.

    Args:
        unknown: tokens that the vocabulary of some model lacks.
        copied: tokens that some model reads as placeholders.
        unseen: for each group of models the pairs of the token of a language and a token that
            training did not see in it.
        unit: of the source.
        known_tags: tags that training saw in the source's language, for hints.
    """
    warnings = [
        f"unknown {described_token(token, unit)}{tag_hint(token, known_tags)}"
        for token in dict.fromkeys(unknown)
    ]
    warnings += [
        f"a placeholder stands for the {described_token(token, unit)}, which training had "
        "rarely or never"
        for token in dict.fromkeys(copied)
    ]
    # Several groups that did not see the same tokens give the same warning.
    warnings += dict.fromkeys(_unseen_warning(pairs, known_tags) for pairs in unseen if pairs)
    return warnings


def _unseen_warning(unseen: Sequence[tuple[str, str]], known_tags: Sequence[str]) -> str:
    """Return a warning of tokens that training did not see in a language, with tags like them.

    Args:
        unseen: pairs of the token of a language and a token; not empty.
        known_tags: tags that training saw in the source's language.
    """
    hints = [tag_hint(token, known_tags) for _language, token in unseen]
    return unseen_text(Counter(unseen)) + "".join(hints)


def described_token(token: str, unit: Unit = CHARACTERS) -> str:
    """Return a source token for people, such as `tag PST` or `character ö`.

    Args:
        token: of a source.
        unit: of the source.
    """
    if is_tag(token):
        return f"tag {readable(decode_tag(token))}"
    return f"{_UNITS[unit.kind]} {readable(unit.decode([token]))}"
