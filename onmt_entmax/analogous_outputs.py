"""Outputs that follow by analogy with training pairs, to be mixed with those of models.

`strings/analogies.py` computes their probabilities for marks and units. This file maps queries to
marks and units, and units to outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from onmt_entmax.query_checks import QueryChecker, TransducerError
from onmt_entmax.strings.analogies import Analogies
from onmt_entmax.strings.pairs import Pair
from onmt_entmax.strings.task import Query, StringTask


class AnalogousOutputs(NamedTuple):
    """The outputs that follow by analogy for one query, and their weight.

    Attributes:
        probabilities: the probability of each output, as tokens with spaces between them. They sum
            to 1, unless there are none.
        weight: the weight of this distribution in the mixture; 0 if it has no outputs.
    """

    probabilities: Mapping[str, float]
    weight: float


NO_ANALOGIES = AnalogousOutputs({}, 0.0)


@dataclass(frozen=True)
class QueryAnalogies:
    """Predicts outputs for queries by analogy with training pairs.

    Attributes:
        task: the task of the models.
        known: the training pairs, in marks and units.
    """

    task: StringTask
    known: Analogies

    @classmethod
    def of(
        cls, pairs: Iterable[tuple[Query, str]], task: StringTask, checker: QueryChecker
    ) -> QueryAnalogies | None:
        """Return the analogies of training pairs; None if there are no pairs.

        Args:
            pairs: training pairs, a query and its target each.
            task: the task of the models.
            checker: turns names of languages into those of the models.

        Raises:
            TransducerError: a query cannot be asked, or a target has no units; the message has the
                number of the pair.
        """
        known: list[Pair] = []
        for number, (query, target) in enumerate(pairs, 1):
            try:
                marks, source = _marks_and_units(checker.checked(query), task)
            except TransducerError as error:
                raise TransducerError(f"analogies: pair {number}: {error}") from None
            if problem := task.target.problem(target):
                raise TransducerError(f"analogies: pair {number}: the target {problem}")
            known.append(Pair(marks, source, tuple(task.target.encode(target))))
        return cls(task, Analogies(known)) if known else None

    def has_words(self, query: Query) -> bool:
        """Return whether a training pair has the language and tags of a checked query."""
        return self.known.has_words(_marks_and_units(query, self.task)[0])

    def outputs(self, query: Query) -> AnalogousOutputs:
        """Return the outputs for a query that `QueryChecker` has checked, and their weight."""
        marks, source = _marks_and_units(query, self.task)
        weight = self.known.weight(marks)
        if not weight:
            return NO_ANALOGIES
        probabilities = {
            " ".join(units): probability
            for units, probability in self.known.distribution(marks, source).items()
        }
        return AnalogousOutputs(probabilities, weight) if probabilities else NO_ANALOGIES


def _marks_and_units(query: Query, task: StringTask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the marks of a checked query, and the units of its source."""
    marks, units = task.marks_and_units(task.encode_source(query))
    return tuple(marks), tuple(units)
