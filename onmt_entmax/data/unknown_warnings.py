"""Warnings of the tokens of texts that training never saw."""

from collections.abc import Iterator
from typing import Literal

from onmt_entmax.data.token_names import most_frequent, unseen_text
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.errors import counted

# Percent of unknown tokens above which a warning asks whether the text is the right one.
_MOST_TEXT = 50
Side = Literal["source", "target"]


def unknown_warnings(counts: UnknownTokens, side: Side = "source") -> Iterator[str]:
    """Yield a line on unknown tokens, and one on tokens unseen in their language, if there are any.

    Args:
        counts: counts of the tokens of some texts.
        side: what these texts are.
    """
    if counts.unknown:
        yield _unknown_text(counts, side)
    if counts.unseen:
        tokens = counted(counts.tokens, f"{side} token")
        yield f"{counts.unseen.total():,} of {tokens} {unseen_text(counts.unseen)}"


def _unknown_text(counts: UnknownTokens, side: Side) -> str:
    """Return the line on unknown tokens: how many there are, in how many texts, and which."""
    tokens = counted(counts.tokens, f"{side} token")
    share = f"{counts.unknown.total():,} of {tokens} ({counts.percent:.2f} %)"
    where = ""
    if counts.texts > 1:
        where = f", in {counts.texts_with_unknown:,} of {counts.texts:,} lines,"
    effect = "the model reads <unk> instead of" if side == "source" else "no output has"
    question = ""
    if counts.percent > _MOST_TEXT:
        question = "; is the text in the language and the tokens of the training data?"
    names = most_frequent(counts.unknown)
    return f"{share}{where} not in the {side} vocabulary: {effect} {names}{question}"
