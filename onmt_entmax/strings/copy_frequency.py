"""Choose `copy_frequency`, below which a source symbol is rare and copied, by the training data.

`copying.py` says how symbols are copied. Copying helps where targets repeat the rare symbols of
their sources, as in inflection, and misleads where they do not, as in pronunciation.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

_LARGEST = 50
_SMALLEST = 2  # with 1, no symbol of the training data would be rare
# Fewer rare symbols than this prove nothing if source and target have units of two kinds: some
# letters and phones look alike by chance, 4 in the Icelandic pronunciations of SIGMORPHON 2021.
_EVIDENCE = 20


def useful_frequency(pairs: Sequence[tuple[Iterable[str], Iterable[str]]], *, alike: bool) -> int:
    """Return the `copy_frequency` that suits training data; 0 if its targets do not copy.

    Let N be 1 % of the number of pairs, but at least 2 and at most 50. A symbol is rare if fewer
    than N sources have it. The result is N if more than half of the rare symbols, counted once in
    each source, stand in the target of their source too:

        鰻 -> 鰻を, 鮭 -> 鮭は      2 of 2 are copied: N
        ŷ -> ə, ẑ -> ẑ              1 of 2 is copied: 0

    Between units of two kinds, as letters and phones, the same sign may by chance mean another
    thing in a few words, so fewer than 20 rare symbols give 0.

    Args:
        pairs: units of the source, without language and tags, and of the target.
        alike: whether source and target have units of one kind.
    """
    one_percent = len(pairs) // 100
    frequency = max(_SMALLEST, min(_LARGEST, one_percent))
    sources_with = Counter(symbol for source, _ in pairs for symbol in set(source))
    rare = copied = 0
    for source, target in pairs:
        rare_symbols = {symbol for symbol in source if sources_with[symbol] < frequency}
        rare += len(rare_symbols)
        copied += len(rare_symbols.intersection(target))
    if not alike and rare < _EVIDENCE:
        return 0
    return frequency if 2 * copied > rare else 0
