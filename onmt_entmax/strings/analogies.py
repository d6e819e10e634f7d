"""Outputs by analogy: what becomes of the most similar training words becomes of a new word.

Words with the same ending tend to inflect alike. Of all German nouns in training, Jahreszeit is one
of those that have most last letters in common with Eisenzeit, so

    Jahreszeit : Jahreszeiten  =  Eisenzeit : Eisenzeiten

Where they differ, Eisen- and Jahres-, the known target is given the letters of the new source. The
`NEIGHBOURS` most similar training sources of the same language and tags vote, each with
`VOTE ** n` for n units in common; their votes, divided by the sum of all, are a distribution over
outputs. This is memory-based learning (Daelemans and van den Bosch 2005, "Memory-Based Language
Processing") with proportional analogy (Lepage 1998, "Solving Analogies on Words").

A network knows which outputs are regular, and analogy which words are alike. Their mixture, as
Khandelwal et al. (2020, "Generalization through Memorization", equation 3) mix a language model
with neighbours, but of whole outputs,

    p(y) = (1 - w) p_network(y) + w p_analogy(y),   w = m / (1 + m),   m = 0.8 a^2,

was right more often than each alone. Here a is the accuracy of analogies in the language: how many
training targets follow from the other training words. docs/results-plans.md has the measurements
behind the numbers.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.pairs import Pair

NEIGHBOURS = 10
"""Training words that vote on the output of a new word"""
VOTE = 5.0
"""How much larger a neighbour's vote is for each further unit in common with the new word"""
_MIXED = 0.8
"""m in a language whose analogies are always right: their weight beside 1 for the network"""
_SAMPLE = 1000
"""Most pairs of a language on which the accuracy of its analogies is measured"""

Units = tuple[str, ...]


class _Known(NamedTuple):
    """A known word of a cell: its source from the last unit to the first, and its target."""

    backwards: Units
    target: Units


class Analogies:
    """Training pairs, from which the outputs of other sources follow by analogy.

    Args:
        pairs: training pairs.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        cells: dict[Units, list[_Known]] = {}
        for pair in pairs:
            known = _Known(pair.source[::-1], pair.target)
            cells.setdefault(pair.marks, []).append(known)
        # Sorted from their ends, words of one ending stand together.
        self._cells = {marks: sorted(known) for marks, known in cells.items()}

    def distribution(self, marks: Units, source: Units) -> dict[Units, float]:
        """Return the probability of each output that follows by analogy; empty if none does.

        Pairs of the same source do not count, so known words are treated as new ones.

        Args:
            marks: language and tags of the source, as tokens.
            source: units of the source.
        """
        voters: list[tuple[int, Units]] = []  # units in common, and the target that they vote for
        for common, known in islice(self._neighbours(marks, source), NEIGHBOURS):
            target = analogous_target(source, known.backwards[::-1], known.target, common)
            if target is not None:
                voters.append((common, target))
        votes: dict[Units, float] = {}
        for common, target in voters:
            # Relative to the first vote, the largest: VOTE**common is too large for a float if
            # long sources have hundreds of units in common.
            if vote := VOTE ** (common - voters[0][0]):
                votes[target] = votes.get(target, 0.0) + vote
        total = sum(votes.values())
        return {target: vote / total for target, vote in votes.items()}

    def weight(self, marks: Units) -> float:
        """Return the weight w of analogies in the mixture, for sources of these marks.

        It is 0 for a language of which no training pair is known.
        """
        accuracy = self.accuracies.get(_language(marks), 0.0)
        mixed = _MIXED * accuracy**2
        return mixed / (1 + mixed)

    @cached_property
    def accuracies(self) -> Mapping[str, float]:
        """The share of training targets of each language that follow from its other words.

        Languages are tokens; "" stands for sources without one. At most `_SAMPLE` pairs of a
        language are tried, at equal distances.
        """
        pairs: dict[str, list[Pair]] = {}
        for marks in sorted(self._cells):
            known_pairs = pairs.setdefault(_language(marks), [])
            known_pairs += (
                Pair(marks, known.backwards[::-1], known.target) for known in self._cells[marks]
            )
        return {language: self._accuracy(known) for language, known in pairs.items()}

    def _accuracy(self, pairs: Sequence[Pair]) -> float:
        """Return the share of pairs whose target is the most probable one by analogy."""
        chosen = pairs[:: -(-len(pairs) // _SAMPLE)]
        right = 0
        for pair in chosen:
            outputs = self.distribution(pair.marks, pair.source)
            right += bool(outputs) and max(outputs, key=outputs.__getitem__) == pair.target
        return right / len(chosen)

    def _neighbours(self, marks: Units, source: Units) -> Iterator[tuple[int, _Known]]:
        """Yield known words of a cell with their numbers of last units in common, most first."""
        known = self._cells.get(marks, [])
        backwards = source[::-1]
        after = bisect_left(known, (backwards,))
        before = after - 1
        while after < len(known) and known[after].backwards == backwards:
            after += 1
        # Going away from its place, words have fewer and fewer units in common with the source.
        common_before = _common(known, before, backwards)
        common_after = _common(known, after, backwards)
        while max(common_before, common_after) >= 0:
            if common_before >= common_after:
                yield common_before, known[before]
                before -= 1
                common_before = _common(known, before, backwards)
            else:
                yield common_after, known[after]
                after += 1
                common_after = _common(known, after, backwards)


def analogous_target(
    source: Units, known_source: Units, known_target: Units, common: int
) -> Units | None:
    """Return the fourth term of the analogy known source : known target = source : ?

    Args:
        source: units of the source.
        known_source: units of the source of a training pair.
        known_target: units of its target.
        common: how many last units the sources have in common.

    Returns:
        The known target with the beginning of the source in place of that of the known source;
        None if the known target does not have the latter, or nothing would be left.
    """
    beginning = source[: len(source) - common]
    replaced = known_source[: len(known_source) - common]
    size = len(replaced)
    for start in range(len(known_target) - size + 1):
        if known_target[start : start + size] == replaced:
            return known_target[:start] + beginning + known_target[start + size :] or None
    return None


def _common(known: Sequence[_Known], index: int, backwards: Units) -> int:
    """Return how many units a known word has in common with a source; -1 if there is no such word.

    Args:
        known: words of a cell.
        index: index of the word.
        backwards: the source from its last unit to its first.
    """
    if not 0 <= index < len(known):
        return -1
    common = 0
    for ours, theirs in zip(backwards, known[index].backwards, strict=False):
        if ours != theirs:
            break
        common += 1
    return common


def _language(marks: Units) -> str:
    """Return the language token of marks; empty if they have none."""
    return marks[0] if marks and is_language(marks[0]) else ""
