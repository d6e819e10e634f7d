"""Unknown and rare source symbols are copied by placeholders.

A symbol that the source vocabulary lacks has no embedding and cannot be written. It becomes
`<copy1>`, `<copy2>`, ... in order of first occurrence, in the source and in the target: the
copyable model of Luong, Sutskever, Le, Vinyals and Zaremba (2015), "Addressing the Rare Word
Problem in Neural Machine Translation", section 3.1. Training replaces the symbols of fewer than
`copy_frequency` training sources, so that it sees placeholders, and the source vocabulary lacks
these symbols. Decoding replaces what the vocabulary lacks.

Network, loss and search do not change. Of one source, let P be its placeholders and S the symbols
that they stand for. Outputs with a placeholder outside P, or with a symbol in S, are excluded, so
every text is written by at most one output: see docs/proofs.md.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onmt_entmax.strings.units import UNKNOWN

MOST = 20
"""Placeholders of a vocabulary at most; further symbols of a source are read as `<unk>`."""
# Limits of the `copy_frequency` that suits training data; see `useful_frequency`.
_LARGEST_FREQUENCY = 50
_SMALLEST_FREQUENCY = 2  # with 1, no symbol of the training data would be rare
_PAIRS_A_SOURCE = 100  # for each of so many pairs, the frequency may be higher by one
# Fewer rare symbols than this prove nothing if source and target have units of two kinds: some
# letters and phones look alike by chance, 4 in the Icelandic pronunciations of SIGMORPHON 2021.
_EVIDENCE = 20


def placeholder(number: int) -> str:
    """Return the placeholder of a number, from 1."""
    return f"<copy{number}>"


PLACEHOLDERS = tuple(placeholder(number) for number in range(1, MOST + 1))


@dataclass(frozen=True)
class Copies:
    """The placeholders of one source.

    Attributes:
        symbols: the symbol that each placeholder stands for, in order of first occurrence.
    """

    symbols: Mapping[str, str]

    def hide(self, tokens: Iterable[str]) -> list[str]:
        """Return tokens with placeholders for the symbols that are copied."""
        placeholders = {symbol: name for name, symbol in self.symbols.items()}
        return [placeholders.get(token, token) for token in tokens]

    def show(self, tokens: Iterable[str]) -> list[str]:
        """Return tokens with the symbols in place of their placeholders, the inverse of `hide`."""
        return [self.symbols.get(token, token) for token in tokens]

    def excluded(self, vocabulary: Container[str]) -> list[str]:
        """Return the tokens that no output for this source may have: see the file's docstring.

        Args:
            vocabulary: tokens of the target.
        """
        absent = [name for name in PLACEHOLDERS if name not in self.symbols]
        return [token for token in (*absent, *self.symbols.values()) if token in vocabulary]


NO_COPIES = Copies({})


def copies_of(
    units: Iterable[str], frequent: Container[str], placeholders: Sequence[str] = PLACEHOLDERS
) -> Copies:
    """Return the placeholders of a source.

    Args:
        units: tokens of the source, without language and tags.
        frequent: tokens that are not copied.
        placeholders: placeholders that may be used.
    """
    rare = [unit for unit in dict.fromkeys(units) if unit not in frequent and unit != UNKNOWN]
    if not rare:
        return NO_COPIES
    # `zip` ends with the placeholders: symbols beyond them are not copied.
    return Copies(dict(zip(placeholders, rare, strict=False)))


def useful_frequency(pairs: Sequence[tuple[Iterable[str], Iterable[str]]], alike: bool) -> int:
    """Return the `copy_frequency` that suits training data; 0 if its targets do not copy.

    With N = 50, but at most 1 % of the pairs and at least 2, a symbol is rare if fewer than N
    sources have it. The result is N if more than half of the rare symbols, counted once in each
    source, stand in the target of their source too: in inflections they do, in pronunciations not.

        鰻 -> 鰻を, 鮭 -> 鮭は      2 of 2 are copied: N
        ŷ -> ə, ẑ -> ẑ              1 of 2 is copied: 0

    Between units of two kinds, as letters and phones, the same sign may by chance mean another
    thing in a few words, so fewer than `_EVIDENCE` rare symbols give 0.

    Args:
        pairs: units of the source, without language and tags, and of the target.
        alike: whether source and target have units of one kind.
    """
    by_size = min(_LARGEST_FREQUENCY, len(pairs) // _PAIRS_A_SOURCE)
    frequency = max(_SMALLEST_FREQUENCY, by_size)
    sources_with = Counter(symbol for source, _ in pairs for symbol in set(source))
    rare = copied = 0
    for source, target in pairs:
        rare_symbols = {symbol for symbol in source if sources_with[symbol] < frequency}
        rare += len(rare_symbols)
        copied += len(rare_symbols.intersection(target))
    if not alike and rare < _EVIDENCE:
        return 0
    return frequency if 2 * copied > rare else 0
