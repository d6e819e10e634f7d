"""Placeholders, by which unknown and rare source symbols are copied.

A symbol that the source vocabulary lacks has no embedding and cannot be written. It becomes
`<copy1>`, `<copy2>`, ... in order of first occurrence, in the source and in the target: the
copyable model of Luong, Sutskever, Le, Vinyals and Zaremba (2015), "Addressing the Rare Word
Problem in Neural Machine Translation", section 3.1. Training replaces the symbols of fewer than
`copy_frequency` training sources, so that it sees placeholders, and the source vocabulary lacks
these symbols; letters of endings are an exception, see `codec.frequent_symbols`. Decoding replaces
what the vocabulary lacks. `copy_frequency.py` chooses this number.

Network, loss and search do not change. Let P be the placeholders of a source and S the symbols that
they stand for. Outputs with a placeholder outside P, or with a symbol in S, are excluded, so
every text is written by at most one output: see docs/proofs.md.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onmt_entmax.strings.units import UNKNOWN

MOST_PLACEHOLDERS = 20
"""Number of placeholders; if a source has more rare symbols, the others are read as `<unk>`"""


def placeholder(number: int) -> str:
    """Return the placeholder of a number, from 1."""
    return f"<copy{number}>"


PLACEHOLDERS = tuple(placeholder(number) for number in range(1, MOST_PLACEHOLDERS + 1))


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
    """Return placeholders for the symbols of a source that are not frequent.

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
