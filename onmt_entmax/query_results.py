"""The result of one query: the outputs of one search, or averages over several searches.

Outputs are averaged as texts in three cases: if models were searched apart, if several token
sequences may be one text, and if outputs by analogy (`strings/analogies.py`) are mixed in. An
averaged probability is a lower bound, and the certificate says how far it may be off;
`report/combine.py` has the argument.
"""

import math
import sys
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from onmt_entmax.analogous_outputs import NO_ANALOGIES, AnalogousOutputs
from onmt_entmax.proven_outputs import Output
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.combine import excluded_by, listed_sequences
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.search.sequence_ensemble import ListedSequences, average_sequences
from onmt_entmax.strings.units import Unit


class QueryResult(NamedTuple):
    """The outputs that searches found for one query.

    Attributes:
        outputs: the most probable first.
        certificate: what is proven about them.
        finished: number of finished outputs, of which `outputs` may list only the best.
    """

    outputs: tuple[Output, ...]
    certificate: Certificate
    finished: int


def single_result(answer: Answer, unit: Unit) -> QueryResult:
    """Return the result of one search.

    Args:
        answer: the answer of the search; never that of a blank line.
        unit: the unit of outputs.
    """
    assert answer.result is not None, "a query is never blank"
    outputs = tuple(
        _output(decoded.text, decoded.hypothesis.log_prob, unit) for decoded in answer.hypotheses
    )
    return QueryResult(outputs, answer.result.certificate, answer.result.finished)


def averaged_result(
    answers: Sequence[Answer],
    weights: Sequence[float],
    unit: Unit,
    *,
    n_best: int,
    analogous: AnalogousOutputs = NO_ANALOGIES,
) -> QueryResult:
    """Return the result of several searches for one query, whose texts are averaged.

    Args:
        answers: an answer of each search.
        weights: a weight for each search; their sum is 1.
        unit: the unit of outputs.
        n_best: how many outputs are returned; 0: all.
        analogous: outputs that are mixed in; the searches share the rest of the weight.
    """
    records = [answer_record(answer) for answer in answers]
    search_weights = [weight * (1 - analogous.weight) for weight in weights]
    distributions, all_weights = [*map(listed_sequences, records)], [*search_weights]
    if analogous.weight:
        distributions.append(ListedSequences(analogous.probabilities, rest=0.0))
        all_weights.append(analogous.weight)
    ensemble = average_sequences(distributions, all_weights)
    averages = zip(ensemble.sequences, ensemble.probabilities, strict=True)
    listed = islice(averages, n_best or None)
    outputs = tuple(_output(text, _log(prob), unit) for text, prob in listed)
    parts = [answer.result.certificate for answer in answers if answer.result is not None]
    certificate = Certificate(
        level=ensemble.level,
        log_bound=_log(ensemble.bound),
        gap=ensemble.gap,
        proven=min(ensemble.proven, len(outputs)),
        mass=min(sum(ensemble.probabilities), 1.0),
        dropped=sum(part.dropped for part in parts),
        truncated=sum(part.truncated for part in parts),
        excluded=excluded_by(records, search_weights),
        log_excluded_bound=_log(_excluded_bound(parts, search_weights)),
        strict=all(part.strict for part in parts),
    )
    return QueryResult(outputs, certificate, len(ensemble.sequences))


def _excluded_bound(parts: Sequence[Certificate], weights: Sequence[float]) -> float:
    """Return a bound on the average probability of an excluded sequence; 0 if there is none.

    An excluded sequence starts with a prefix that a model excluded or did not follow, so the larger
    of the two bounds of each model holds.
    """
    log_bounds = [max(part.log_excluded_bound, part.log_bound) for part in parts]
    bound = sum(
        weight * math.exp(log_bound) for weight, log_bound in zip(weights, log_bounds, strict=True)
    )
    if max(log_bounds) > -math.inf:
        return max(bound, sys.float_info.min)  # a bound that underflows must not become 0
    return bound


def _output(text: str, log_prob: float, unit: Unit) -> Output:
    """Return an output as people write it; `text` is tokens between spaces."""
    decoded = text if unit.kind == "text" else unit.decode(text.split())
    return Output(decoded, log_prob, math.exp(log_prob))


def _log(prob: float) -> float:
    """Return the logarithm of a probability, which may be 0."""
    return math.log(prob) if prob else -math.inf
