"""Record in vocabularies which tokens training saw in each language."""

from collections.abc import Iterable, Mapping

from onmt_entmax.data.language_tokens import LanguageTokens
from onmt_entmax.data.vocabulary import Vocabularies


def with_seen_tokens(
    vocabularies: Vocabularies,
    tokens_by_language: Mapping[str, LanguageTokens],
    *,
    records_targets: bool,
    is_continued: bool,
) -> Vocabularies:
    """Return vocabularies that record the tokens which a training sees in each language.

    Args:
        vocabularies: the vocabularies of source and target before the training.
        tokens_by_language: the tokens that it sees in each language; empty unless every source
            begins with its language.
        records_targets: whether to record the tokens of targets, too.
        is_continued: whether the training continues an earlier one, whose vocabularies these are.
    """
    source, target = vocabularies
    source_tokens = {name: tokens.source for name, tokens in tokens_by_language.items()}
    target_tokens: dict[str, set[str]] = {}
    if records_targets:
        target_tokens = {name: tokens.target for name, tokens in tokens_by_language.items()}
    # The model reads another language as `<unk>`, and cannot tell its sources from others.
    languages = frozenset(language for language in tokens_by_language if language in source)
    complete = _complete_in_targets(vocabularies, languages) if is_continued else languages
    return Vocabularies(
        source.with_seen(source_tokens, languages),
        target.with_seen(target_tokens, complete),
    )


def _complete_in_targets(vocabularies: Vocabularies, languages: Iterable[str]) -> frozenset[str]:
    """Return the languages whose target tokens are all known after a continued training.

    An earlier version of this package recorded the tokens of sources, but not of targets. So all
    target tokens of a language are known only

    - if the earlier training recorded target tokens of this language, or
    - if it recorded source tokens, but none in this language, which is then new.

    Args:
        vocabularies: the vocabularies before the continued training.
        languages: the languages of its data that the source vocabulary has.
    """
    source, target = vocabularies
    return frozenset(
        language
        for language in languages
        if language in target.seen or (source.seen and language not in source.seen)
    )
