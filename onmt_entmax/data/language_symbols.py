"""Restrict outputs to the symbols that training saw in their language."""

import warnings
from collections.abc import Mapping

from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabulary
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.marks import LANGUAGE, is_language


class LanguageSymbols:
    """The symbols that outputs of each language may have: those that training saw in its targets.

    Args:
        recorded: the target tokens that the model records for each language, by the token of the
            language.
    """

    def __init__(self, recorded: Mapping[str, frozenset[str]]) -> None:
        self._recorded = recorded
        self._warned_of: set[str] = set()  # languages

    def of(self, language: str) -> frozenset[str] | None:
        """Return the target tokens that outputs of a language may have; None: all tokens.

        Outputs may have all tokens if the model records none of the language. A warning says so,
        once for each language.

        Args:
            language: the first token of a source. It need not be a language.
        """
        symbols = self._recorded.get(language)
        if symbols is None and is_language(language) and language not in self._warned_of:
            self._warned_of.add(language)
            warnings.warn(
                f"target_symbols: the model does not record the target symbols of "
                f"{language.removeprefix(LANGUAGE)}: its outputs may have any",
                stacklevel=2,
            )
        return symbols


class ForeignTokens:
    """The target tokens that outputs of a language may not have, computed once for each language.

    Args:
        symbols: the symbols that each language may have.
        target: the target vocabulary.
    """

    def __init__(self, symbols: LanguageSymbols, target: Vocabulary) -> None:
        self._symbols = symbols
        self._target = target
        self._of_language: dict[str, Mapping[str, int]] = {}

    def of(self, language: str) -> Mapping[str, int]:
        """Return the ids of the foreign tokens, by token; empty if outputs may have all tokens.

        Special tokens and placeholders of copied symbols are foreign to no language.

        Args:
            language: see `LanguageSymbols.of`.
        """
        if language in self._of_language:
            return self._of_language[language]
        own = self._symbols.of(language)
        if own is None:
            return {}
        allowed = {*own, *TARGET_SPECIALS, *PLACEHOLDERS}
        foreign = {
            token: token_id
            for token_id, token in enumerate(self._target.tokens)
            if token not in allowed
        }
        self._of_language[language] = foreign
        return foreign
