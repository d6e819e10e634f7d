"""Map the tokens of texts to the tokens of the network, and back.

The network of a right-to-left model has reversed targets, and rare symbols become placeholders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from onmt_entmax.strings.copying import NO_COPIES, PLACEHOLDERS, Copies, copies_of
from onmt_entmax.strings.task import TRANSLATION, StringTask, TaskError


class Encoded(NamedTuple):
    """The tokens of a source and its target as the network reads and writes them.

    Attributes:
        source: tokens of the source.
        target: tokens of the target, in the order in which the network writes them.
        copies: placeholders of the source.
    """

    source: list[str]
    target: list[str]
    copies: Copies


@dataclass(frozen=True)
class Codec:
    """Maps the tokens of a text to those that a network reads and writes, and back.

    Attributes:
        task: task of the model.
        frequent: the source tokens that are not copied; unused if the task copies nothing.
        placeholders: placeholders that the source vocabulary has.
    """

    task: StringTask = TRANSLATION
    frequent: Container[str] = field(default_factory=frozenset, repr=False)
    placeholders: Sequence[str] = field(default=PLACEHOLDERS, repr=False)

    @classmethod
    def of_vocabulary(cls, task: StringTask, source: Container[str]) -> Codec:
        """Return the codec of a model: it copies the symbols that its source vocabulary lacks."""
        # The vocabulary has the placeholders that the training data needed, which are the first.
        placeholders = tuple(takewhile(source.__contains__, PLACEHOLDERS))
        return cls(task, frequent=source, placeholders=placeholders)

    def copies(self, source: Sequence[str]) -> Copies:
        """Return the placeholders of a source."""
        if not self.task.copies:
            return NO_COPIES
        _, units = self.task.marks_and_units(source)
        return copies_of(units, self.frequent, self.placeholders)

    def encode(self, source: Sequence[str], target: Sequence[str] = ()) -> Encoded:
        """Return the network's tokens for the tokens of a source and its target.

        If x is rare, and the model writes from right to left, the source `a x` and the target `x b`
        become `a <copy1>` and `b <copy1>`.
        """
        copies = self.copies(source)
        if copies.symbols:
            marks, units = self.task.marks_and_units(source)
            source, target = [*marks, *copies.hide(units)], copies.hide(target)
        return Encoded(list(source), self._reordered(target), copies)

    def decode(self, target: Sequence[str], copies: Copies = NO_COPIES) -> list[str]:
        """Return the tokens of the text that the network's tokens stand for."""
        tokens = self._reordered(target)
        return copies.show(tokens) if copies.symbols else tokens

    def _reordered(self, target: Sequence[str]) -> list[str]:
        """Return target tokens in the network's order, or back in that of the text."""
        return list(reversed(target)) if self.task.right_to_left else list(target)


def frequent_symbols(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]], task: StringTask, least: int
) -> frozenset[str]:
    """Return the source tokens that are not copied.

    A unit is copied if fewer than `least` sources have it, unless at least `least` targets add it:
    they have it, and their sources do not. Hindi endings, for instance, have letters that few stems
    have. If such a letter were copied, no output for a source with it could have the ending, since
    a symbol that has a placeholder is excluded (`copying.py`).

    Args:
        pairs: training sources and targets, as tokens.
        task: tells marks, which are never copied, from units.
        least: the smallest number of sources that have a unit, or of targets that add it.

    Raises:
        TaskError: a source has a placeholder as a unit of its own.
    """
    sources_with: Counter[str] = Counter()
    targets_adding: Counter[str] = Counter()
    marks: set[str] = set()
    for source, target in pairs:
        source_marks, units = task.marks_and_units(source)
        marks.update(source_marks)
        sources_with.update(set(units))
        targets_adding.update(set(target).difference(units))
    clashing = sources_with.keys() & set(PLACEHOLDERS)
    if clashing:
        raise TaskError(
            f"copy_frequency: {min(clashing)} is a symbol of the data, and names a placeholder; "
            "rename it there, or set copy_frequency: 0"
        )
    frequent = {
        unit
        for unit, count in sources_with.items()
        if count >= least or targets_adding[unit] >= least
    }
    return frozenset(marks) | frequent
