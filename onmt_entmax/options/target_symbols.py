"""The option `target_symbols`: which symbols the outputs of each language may have."""

import warnings
from collections.abc import Mapping, Sequence

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.config import TARGET_SYMBOLS, TargetSymbols
from onmt_entmax.data.language_symbols import LanguageSymbols


def language_symbols(
    models: Sequence[LoadedModel], wanted: TargetSymbols | None = None
) -> LanguageSymbols | None:
    """Return the symbols that outputs of each language may have; None if they may have all.

    Outputs may have a symbol if some model saw it in a training target of their language. Outputs
    of a language that some model does not record may have all symbols.

    Args:
        models: models of an ensemble.
        wanted: value of the option; None if the user did not set it: the default applies, without a
            warning.

    Warns:
        UserWarning: if the user wants a restriction, but a model records no symbols of languages.
    """
    if (wanted or TARGET_SYMBOLS) == "any":
        return None
    recorded = [model.vocabularies.target.seen for model in models]
    if all(recorded):
        return LanguageSymbols(_seen_by_some_model(recorded))
    if wanted:
        without = next(model for model, seen in zip(models, recorded, strict=True) if not seen)
        warnings.warn(
            f"target_symbols: {without.folder} does not record the target symbols of languages "
            "(its training had no languages, or subwords, or was by an earlier version): no "
            "symbols are excluded",
            stacklevel=3,
        )
    return None


def _seen_by_some_model(
    recorded: Sequence[Mapping[str, frozenset[str]]],
) -> dict[str, frozenset[str]]:
    """Return the symbols that some model saw, for each language that all models record.

    Args:
        recorded: the symbols that each model saw in each language.
    """
    languages = set.intersection(*map(set, recorded))
    return {
        language: frozenset().union(*(seen[language] for seen in recorded))
        for language in languages
    }
