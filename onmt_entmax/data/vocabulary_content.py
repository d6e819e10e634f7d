"""Convert the content of a model folder's vocabulary file to vocabularies, and back."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from onmt_entmax.data.vocabulary import (
    TARGET_SPECIALS,
    Vocabularies,
    Vocabulary,
    VocabularyError,
)
from onmt_entmax.rules import shown


def read_vocabularies(
    source: object, target: object, seen: object = None, seen_targets: object = None
) -> Vocabularies:
    """Return the vocabularies that a vocabulary file describes, after checking its content.

    Args:
        source: should be a list of tokens.
        target: should be a list of tokens.
        seen: should be None, or map languages to the tokens of their sources, between spaces.
        seen_targets: should be None, or map languages to the tokens of their targets.

    Raises:
        VocabularyError: names the part and what is wrong.
    """
    source_side = _read_side("source", source)
    target_side = _read_side("target", target)
    for special in TARGET_SPECIALS:
        if special not in target_side:
            raise VocabularyError(f"target: the special token {special!r} is missing")
    if source_side == target_side:
        target_side = source_side  # one object, as `share_vocab` makes it
    sides = Vocabularies(source_side, target_side)
    if seen is not None:
        source_side = replace(source_side, seen=_read_seen("seen", seen, sides))
    if seen_targets is not None:
        target_side = replace(target_side, seen=_read_seen("seen_targets", seen_targets, sides))
    return Vocabularies(source_side, target_side)


def _read_side(side: str, tokens: object) -> Vocabulary:
    """Return the vocabulary of one side.

    Args:
        side: source or target, for errors.
        tokens: should be a list of tokens.

    Raises:
        VocabularyError: it is not a list of tokens, or they cannot be a vocabulary.
    """
    if not isinstance(tokens, list):
        raise VocabularyError(f"{side}: must be a list of tokens, not {shown(tokens)}")
    for token in tokens:
        if not isinstance(token, str):
            raise VocabularyError(f"{side}: {shown(token)} is no token, which is a string")
    try:
        return Vocabulary(tuple(tokens))
    except VocabularyError as error:
        raise VocabularyError(f"{side}: {error}") from None


def _read_seen(part: str, content: object, sides: Vocabularies) -> dict[str, frozenset[str]]:
    """Return the tokens of each language that a part of a file lists.

    Args:
        part: `seen`, which lists tokens of sources, or `seen_targets`.
        content: should map languages to tokens between spaces.
        sides: must have these: the source vocabulary has the languages, and the vocabulary of the
            part's side has the tokens.

    Raises:
        VocabularyError: names the part and what is wrong.
    """
    if not isinstance(content, dict) or not all(isinstance(text, str) for text in content.values()):
        raise VocabularyError(
            f"{part}: must map languages to tokens between spaces, not {shown(content)}"
        )
    tokens_of = {language: frozenset(text.split()) for language, text in content.items()}
    for language in tokens_of:
        if language not in sides.source:
            raise VocabularyError(f"{part}: {shown(language)} is not in the source vocabulary")
    side, vocabulary = ("source", sides.source) if part == "seen" else ("target", sides.target)
    for token in chain(*map(sorted, tokens_of.values())):  # sorted, so that the first one is named
        if token not in vocabulary:
            raise VocabularyError(f"{part}: {shown(token)} is not in the {side} vocabulary")
    return tokens_of


def as_content(vocabularies: Vocabularies) -> dict[str, object]:
    """Return the content of a vocabulary file, which `read_vocabularies` reads."""
    content: dict[str, object] = {
        "source": vocabularies.source.tokens,
        "target": vocabularies.target.tokens,
    }
    for name, side in zip(("seen", "seen_targets"), vocabularies, strict=True):
        if side.seen:
            content[name] = {
                language: " ".join(sorted(tokens)) for language, tokens in sorted(side.seen.items())
            }
    return content
