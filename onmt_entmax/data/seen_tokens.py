"""Record in vocabularies which tokens training saw in each language."""

from collections.abc import Iterable, Mapping

from onmt_entmax.data.language_tokens import LanguageTokens
from onmt_entmax.data.vocabulary import Vocabularies


def with_seen_tokens(
    vocabularies: Vocabularies,
    languages: Mapping[str, LanguageTokens],
    *,
    targets: bool,
    continued: bool,
) -> Vocabularies:
    """Return vocabularies after a training that saw these tokens.

    Args:
        vocabularies: the vocabularies of source and target.
        languages: the tokens by language; empty unless every source begins with its language.
        targets: whether those of targets are recorded.
        continued: whether a training before this one made the vocabularies.
    """
    source, target = vocabularies
    known_languages = frozenset(language for language in languages if language in source)
    source_tokens = {name: tokens.source for name, tokens in languages.items()}
    target_tokens = {name: tokens.target for name, tokens in languages.items()} if targets else {}
    complete = _complete(vocabularies, known_languages) if continued else known_languages
    return Vocabularies(
        source.with_seen(source_tokens, known_languages),
        target.with_seen(target_tokens, complete),
    )


def _complete(vocabularies: Vocabularies, languages: Iterable[str]) -> frozenset[str]:
    """Return the languages all of whose target tokens are known after a continued training.

    The model may be of an earlier version, which recorded the tokens of sources but not of targets.
    Then a language is complete

    - if the earlier training recorded its target tokens, or
    - if the earlier training recorded source tokens, and none in this language: it is new.

    Args:
        vocabularies: before this training.
        languages: the languages of its data, if they are tokens of the source vocabulary.
    """
    source, target = vocabularies
    return frozenset(
        language
        for language in languages
        if language in target.seen or (source.seen and language not in source.seen)
    )
