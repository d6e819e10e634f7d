"""Read, check and make the content of the vocabulary file of a model folder."""

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
    """Return the vocabularies of the content of a file.

    Args:
        source: should be a list of tokens.
        target: should be a list of tokens.
        seen: should be None, or map languages to the tokens of their sources, between spaces.
        seen_targets: should be None, or map languages to the tokens of their targets.

    Raises:
        VocabularyError: names the part and what is wrong.
    """
    first = _read_side("source", source)
    second = _read_side("target", target)
    for special in TARGET_SPECIALS:
        if special not in second:
            raise VocabularyError(f"target: the special token {special!r} is missing")
    if first == second:
        second = first  # one object, as `share_vocab` makes it
    if seen is not None:
        source_tokens = _read_seen("seen", seen, languages=first, side=first, side_name="source")
        first = replace(first, seen=source_tokens)
    if seen_targets is not None:
        target_tokens = _read_seen(
            "seen_targets", seen_targets, languages=first, side=second, side_name="target"
        )
        second = replace(second, seen=target_tokens)
    return Vocabularies(first, second)


def _read_side(side: str, tokens: object) -> Vocabulary:
    """Return the vocabulary of one side.

    Args:
        side: source or target, for errors.
        tokens: should be a list of tokens.

    Raises:
        VocabularyError: it is not, or they are no vocabulary.
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


def _read_seen(
    name: str, content: object, languages: Vocabulary, side: Vocabulary, side_name: str
) -> dict[str, frozenset[str]]:
    """Return the tokens of each language that a part of a file lists.

    Args:
        name: the name of the part.
        content: should map languages to tokens between spaces.
        languages: the source vocabulary, which must have the languages.
        side: the vocabulary that must have the tokens.
        side_name: source or target.

    Raises:
        VocabularyError: names the part and what is wrong.
    """
    if not isinstance(content, dict) or not all(isinstance(text, str) for text in content.values()):
        raise VocabularyError(
            f"{name}: must map languages to tokens between spaces, not {shown(content)}"
        )
    tokens_of = {language: frozenset(text.split()) for language, text in content.items()}
    for language in tokens_of:
        if language not in languages:
            raise VocabularyError(f"{name}: {shown(language)} is not in the source vocabulary")
    for token in chain(*map(sorted, tokens_of.values())):  # so that the first one is named
        if token not in side:
            raise VocabularyError(f"{name}: {shown(token)} is not in the {side_name} vocabulary")
    return tokens_of


def as_content(vocabularies: Vocabularies) -> dict[str, object]:
    """Return what a file of vocabularies holds, which `read_vocabularies` reads."""
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
