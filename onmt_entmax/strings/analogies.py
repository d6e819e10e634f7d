"""Outputs by analogy: a new word changes as the most similar training words do.

Words that are alike tend to inflect alike. Few German nouns in training have as many last letters
in common with Eisenzeit as Jahreszeit has, so

    Jahreszeit : Jahreszeiten  =  Eisenzeit : Eisenzeiten

which `proportions.py` computes. The `NEIGHBOURS` most similar training sources of the same language
and tags vote, each with `VOTE ** likeness`; their votes, divided by the sum of all, are a
distribution over outputs. Which words are similar depends on the language, see `likeness.py`. This
is memory-based learning (Daelemans and van den Bosch 2005, "Memory-Based Language Processing").

A network is good at regular outputs, and analogy at words that resemble others. Their mixture

    p(y) = (1 - w) p_network(y) + w p_analogy(y),   w = m / (1 + m),   m = 0.8 a,

was right more often than each alone. Here y is a whole output; Khandelwal et al. (2020,
"Generalization through Memorization", equation 3) mix next tokens in this way. The accuracy a of
analogies in the language is the share of training targets that follow from the other training
words. The numbers come from the measurements in docs/results-analogies.md.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import NamedTuple

import numpy as np

from onmt_entmax.strings.likeness import LIKENESSES, KnownWords, Likeness
from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.pairs import Pair
from onmt_entmax.strings.proportions import Units, fourth_term

NEIGHBOURS = 10
"""Training words that vote on the output of a new word"""
VOTE = 5.0
"""Factor on a neighbour's vote if it is more similar by 1"""
_MIXED = 0.8
"""m for a language whose analogies are always right: their weight relative to the network's"""
_SAMPLE = 500
"""Most pairs of a language on which the accuracy of its analogies is measured"""


class Measured(NamedTuple):
    """The accuracy of analogies for the training pairs of a language, each without its own source.

    Attributes:
        likeness: the measure of likeness with the highest accuracy.
        accuracy: share of the targets that follow with this measure.
    """

    likeness: Likeness
    accuracy: float


class Analogies:
    """Training pairs, from which the outputs of other sources follow by analogy.

    Args:
        pairs: training pairs.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        cells: dict[Units, list[Pair]] = {}
        for pair in pairs:
            cells.setdefault(pair.marks, []).append(pair)
        # Sorted, so that no output depends on the order of the pairs.
        self._cells = {
            marks: _Cell(sorted(known, key=lambda pair: (pair.source, pair.target)))
            for marks, known in sorted(cells.items())
        }

    def has_words(self, marks: Units) -> bool:
        """Return whether any training pair has this language and these tags."""
        return marks in self._cells

    def distribution(self, marks: Units, source: Units) -> dict[Units, float]:
        """Return the probability of each output that follows by analogy; empty if none does.

        Pairs of the same source do not count, so known words are treated as new ones.

        Args:
            marks: language and tags of the source, as tokens.
            source: units of the source.
        """
        if marks not in self._cells:
            return {}
        likeness = self.measured[_language(marks)].likeness
        return self._cells[marks].distributions(source, [likeness])[0]

    def weight(self, marks: Units) -> float:
        """Return the weight w of analogies in the mixture, for sources of these marks.

        It is 0 for a language of which no training pair is known.
        """
        language = _language(marks)
        if language not in self.measured:
            return 0.0
        mixed = _MIXED * self.measured[language].accuracy
        return mixed / (1 + mixed)

    @cached_property
    def measured(self) -> Mapping[str, Measured]:
        """The accuracy of analogies by language.

        Languages are tokens; "" stands for sources without one. At most `_SAMPLE` pairs of a
        language are tried, at equal distances in the sorted list.
        """
        pairs: dict[str, list[Pair]] = {}
        for marks, cell in self._cells.items():
            pairs.setdefault(_language(marks), []).extend(cell.pairs)
        return {language: self._measure(known) for language, known in pairs.items()}

    def _measure(self, pairs: Sequence[Pair]) -> Measured:
        """Try each measure of likeness on the pairs of a language; return the best."""
        chosen = pairs[:: math.ceil(len(pairs) / _SAMPLE)]
        right = dict.fromkeys(LIKENESSES, 0)  # number of targets that follow with each measure
        for pair in chosen:
            tried = self._cells[pair.marks].distributions(pair.source, LIKENESSES)
            for likeness, outputs in zip(LIKENESSES, tried, strict=True):
                if outputs and max(outputs, key=outputs.__getitem__) == pair.target:
                    right[likeness] += 1
        best = max(LIKENESSES, key=right.__getitem__)  # the first of equal ones
        return Measured(best, right[best] / len(chosen))


class _Cell:
    """The training pairs of one language and combination of tags.

    Args:
        pairs: the pairs.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = pairs

    @cached_property
    def _sources(self) -> KnownWords:
        return KnownWords([pair.source for pair in self.pairs])

    def distributions(
        self, source: Units, likenesses: Sequence[Likeness]
    ) -> list[dict[Units, float]]:
        """Return the distribution over outputs of a source by each measure of likeness.

        Args:
            source: units of the source.
            likenesses: measures of likeness.
        """
        shared = self._sources.shared(source)
        others = np.flatnonzero([pair.source != source for pair in self.pairs])
        # Measures have many neighbours in common, so targets are computed once.
        target_of = cache(partial(self._analogous, source))
        distributions: list[dict[Units, float]] = []
        for measure in likenesses:
            likeness = measure.of(shared)[others]
            nearest = np.argsort(-likeness, kind="stable")[:NEIGHBOURS]
            targets = map(target_of, others[nearest].tolist())
            voters = zip(likeness[nearest].tolist(), targets, strict=True)
            distributions.append(_shares([(x, target) for x, target in voters if target]))
        return distributions

    def _analogous(self, source: Units, index: int) -> Units | None:
        """Return the target of a source by analogy with a pair; None if there is none."""
        known = self.pairs[index]
        return fourth_term(source, known.source, known.target)


def _shares(voters: Sequence[tuple[float, Units]]) -> dict[Units, float]:
    """Return the share of each target in all votes; empty without voters.

    Args:
        voters: likeness and target of each voter, the most similar one first.
    """
    votes: dict[Units, float] = {}
    # A likeness is from -16 to 80, so no vote is 0 or infinite.
    for likeness, target in voters:
        votes[target] = votes.get(target, 0.0) + VOTE**likeness
    total = sum(votes.values())
    return {target: vote / total for target, vote in votes.items()}


def _language(marks: Units) -> str:
    """Return the language token of marks; empty if they have none."""
    return marks[0] if marks and is_language(marks[0]) else ""
