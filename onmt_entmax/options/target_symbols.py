"""The option `target_symbols`: which symbols the outputs of each language may have."""

import warnings
from collections.abc import Sequence

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.config import TARGET_SYMBOLS, TargetSymbols
from onmt_entmax.data.language_symbols import LanguageSymbols


def language_symbols(
    models: Sequence[LoadedModel], wanted: TargetSymbols | None = None
) -> LanguageSymbols | None:
    """Return the symbols that outputs of each language may have; None: all.

    Outputs may have a symbol if a training target of their language has it, in the data of any
    model. Outputs of a language that some model does not record may have all symbols.

    Args:
        models: models of an ensemble.
        wanted: value of the option; None: the default, and no warning.

    Warns:
        UserWarning: if the user wants a restriction, but a model records no symbols of languages.
    """
    if (wanted or TARGET_SYMBOLS) == "any":
        return None
    recorded = [model.vocabularies.target.seen for model in models]
    if all(recorded):
        languages = set.intersection(*map(set, recorded))
        return LanguageSymbols(
            {
                language: frozenset().union(*(of_model[language] for of_model in recorded))
                for language in languages
            }
        )
    if wanted:
        without = next(model for model, seen in zip(models, recorded, strict=True) if not seen)
        warnings.warn(
            f"target_symbols: {without.folder} does not record the target symbols of languages "
            "(its training had no languages, or subwords, or was by an earlier version): no "
            "symbols are excluded",
            stacklevel=3,
        )
    return None
