"""Restrict outputs to the symbols that training saw in their language."""

import warnings
from collections.abc import Mapping

from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabulary
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.marks import LANGUAGE, is_language


class LanguageSymbols:
    """The target tokens that training saw in each language.

    Args:
        recorded: target tokens, by the token of the language.
    """

    def __init__(self, recorded: Mapping[str, frozenset[str]]) -> None:
        self._recorded = recorded
        self._warned_of: set[str] = set()  # languages

    def of(self, language: str) -> frozenset[str] | None:
        """Return the tokens of a language.

        Args:
            language: its token; another first token of a source stands for no language.

        Returns:
            None if they are not recorded: users are warned once, and outputs may have any.
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
    """The target tokens that outputs of a language may not have.

    Args:
        symbols: the symbols that each language may have.
        target: the target vocabulary.
    """

    def __init__(self, symbols: LanguageSymbols, target: Vocabulary) -> None:
        self._symbols = symbols
        self._target = target
        self._of_language: dict[str, dict[str, int]] = {}  # computed once for each language

    def of(self, language: str) -> dict[str, int]:
        """Return the foreign tokens with their ids; none if nothing is recorded of the language.

        Special tokens and placeholders of copied symbols are foreign to no language.
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
