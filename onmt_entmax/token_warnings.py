"""Warn of source tokens that were rare or missing in the training data.

A warning names a tag, character, symbol or word as users write it, and for an unknown tag also the
known tags that are most like it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from onmt_entmax.data.token_names import UnseenToken, readable, unseen_text
from onmt_entmax.strings.marks import decode_tag, is_tag
from onmt_entmax.strings.tag_hints import nearest_tags, tag_hint
from onmt_entmax.strings.units import CHARACTERS, Unit

# Name of one unit of a source in messages, by the kind of the unit.
_NOUNS = {"characters": "character", "symbols": "symbol", "text": "word"}


def token_warnings(
    *,
    unknown: Iterable[str],
    copied: Iterable[str],
    unseen: Iterable[Sequence[UnseenToken]],
    unit: Unit,
    known_tags: Sequence[str],
) -> list[str]:
    """Return the warnings about the tokens of a source, each once.

    Args:
        unknown: tokens that the vocabulary of some model lacks.
        copied: tokens that some model reads as placeholders.
        unseen: for each group of models, the tokens that its training did not see.
        unit: the unit of the source.
        known_tags: tags that training saw in the source's language.
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
    # If several groups of models did not see the same tokens, one warning is enough.
    warnings += dict.fromkeys(_unseen_warning(tokens, known_tags) for tokens in unseen if tokens)
    return warnings


def _unseen_warning(unseen: Sequence[UnseenToken], known_tags: Sequence[str]) -> str:
    """Return a warning that names the unseen tokens, with hints at known tags.

    Args:
        unseen: at least one.
        known_tags: see `token_warnings`.
    """
    tokens = dict.fromkeys(token for _language, token in unseen)
    return unseen_text(Counter(unseen)) + _hints([*tokens], known_tags)


def _hints(tokens: Sequence[str], known_tags: Sequence[str]) -> str:
    """Return ` (did you mean ...?)` with the known tags that are most like tokens; or "".

    If there are several tokens, the hint says which one each known tag would replace.
    """
    if len(tokens) == 1:
        return tag_hint(tokens[0], known_tags)
    nearest = {token: nearest_tags(token, known_tags) for token in tokens}
    hints = [
        f"{known} instead of {readable(decode_tag(token))}"
        for token, known in nearest.items()
        if known
    ]
    return f" (did you mean {', '.join(hints)}?)" if hints else ""


def described_token(token: str, unit: Unit = CHARACTERS) -> str:
    """Return a source token as a warning names it, such as `tag PST` or `character ö`."""
    if is_tag(token):
        return f"tag {readable(decode_tag(token))}"
    return f"{_NOUNS[unit.kind]} {readable(unit.decode([token]))}"
