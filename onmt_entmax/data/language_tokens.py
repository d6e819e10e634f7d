"""Find the tokens that training saw in each language, if every source begins with its language."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.token_rows import TokenRows
from onmt_entmax.strings.marks import is_language


class LanguageTokens(NamedTuple):
    """The tokens that training saw in one language.

    Attributes:
        source: the tokens of its sources, without the language itself.
        target: the tokens of its targets.
    """

    source: set[str]
    target: set[str]


def tokens_by_language(pairs: NumberedPairs) -> dict[str, LanguageTokens] | None:
    """Return the tokens of each language; None unless every source begins with one.

    For each side, a table of languages by tokens is filled with all lines at once. Its rows become
    the sets.
    """
    source, source_tokens = pairs.source.rows(), pairs.source.tokens()
    target, target_tokens = pairs.target.rows(), pairs.target.tokens()
    kept = np.diff(source.starts) > 0  # filtered pairs are empty
    first_numbers = source.ids[source.starts[:-1][kept]]
    # `languages` has the numbers of all first tokens, which should be languages, each once;
    # `inverse` has the index of each pair's first token in `languages`.
    languages, inverse = np.unique(first_numbers, return_inverse=True)
    if not all(map(is_language, source_tokens[languages])):
        return None
    language_of_pair = inverse.astype(np.int32)
    in_source = _seen(source, kept, language_of_pair, (len(languages), len(source_tokens)))
    in_target = _seen(target, kept, language_of_pair, (len(languages), len(target_tokens)))
    in_source[np.arange(len(languages)), languages] = False  # the language itself
    return {
        source_tokens[language]: LanguageTokens(
            source=set(source_tokens[in_source[row]]),
            target=set(target_tokens[in_target[row]]),
        )
        for row, language in enumerate(languages)
    }


def _seen(
    lines: TokenRows,
    kept: NDArray[np.bool_],
    language_of_pair: NDArray[np.int32],
    shape: tuple[int, int],
) -> NDArray[np.bool_]:
    """Return which tokens the lines of each language have.

    Args:
        lines: the lines of one side, as numbers of tokens.
        kept: ``(lines,)``, False for lines of filtered pairs, which are empty.
        language_of_pair: ``(kept pairs,)``, the row of each pair's language in the result.
        shape: ``(languages, tokens)`` of the result.
    """
    seen = np.zeros(shape, np.bool_)
    lengths = np.diff(lines.starts)[kept]
    seen[np.repeat(language_of_pair, lengths), lines.ids] = True
    return seen
