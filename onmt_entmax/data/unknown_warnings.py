"""Warnings of the tokens of texts that training never saw."""

from collections.abc import Iterator
from typing import Literal

from onmt_entmax.data.token_names import most_frequent, unseen_text
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.errors import counted

# With more than this share of unknown tokens, a warning asks whether the text is the right one.
_WRONG_TEXT_PERCENT = 50
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
    """Return the line on unknown tokens: how many there are, in how many texts, and which.

    An example is `3 of 10 source tokens (30.00 %), in 1 of 2 lines, not in the source vocabulary:
    the model reads <unk> instead of 'x' (2), 'y'`.
    """
    problem = f"{counts.unknown.total():,} of {counted(counts.tokens, f'{side} token')}"
    problem += f" ({counts.percent:.2f} %)"
    if counts.texts > 1:
        problem += f", in {counts.texts_with_unknown:,} of {counts.texts:,} lines,"
    names = most_frequent(counts.unknown)
    if side == "source":
        effect = f"the model reads <unk> instead of {names}"
    else:
        effect = f"no output has {names}"
    line = f"{problem} not in the {side} vocabulary: {effect}"
    if counts.percent > _WRONG_TEXT_PERCENT:
        line += "; is the text in the language and the tokens of the training data?"
    return line
