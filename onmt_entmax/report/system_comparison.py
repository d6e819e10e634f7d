"""Scores of translation systems, and their paired bootstrap test (Koehn 2004)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from onmt_entmax.report.oracle import oracle
from onmt_entmax.report.sacrebleu_metrics import NamedMetric


class System(NamedTuple):
    """A system and its translations: one line for each sentence, or the lines of an n-best list."""

    name: str
    lines: list[str]


@dataclass(frozen=True)
class SystemScore:
    """The score of one system by one measure; only a comparison of systems has more than `value`.

    Attributes:
        value: the score, out of 100.
        mean: mean over the bootstrap samples.
        half_width: half of the 95 % confidence interval around that mean.
        p_value: p-value of the difference from the first system; None for the first system.
    """

    value: float
    mean: float | None = None
    half_width: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Measure:
    """The scores of all systems by one measure.

    Attributes:
        name: its name, such as `BLEU 13a`.
        signature: sacrebleu's signature, which says how the measure is computed.
        scores: scores by the name of the system, in the order of the systems.
    """

    name: str
    signature: str
    scores: Mapping[str, SystemScore]


def compare(
    systems: Sequence[System],
    references: list[list[str]],
    metrics: Sequence[NamedMetric],
    *,
    resamples: int,
    nbest: int = 1,
) -> list[Measure]:
    """Measure systems; compare several with the first by a paired bootstrap test.

    Args:
        systems: systems of different names, with `nbest` lines for each sentence.
        references: reference translations, one line for each sentence.
        metrics: the measures.
        resamples: number of bootstrap samples; 0 compares nothing.
        nbest: lines of each sentence; if above 1, the scores of the oracle follow each measure.
    """
    measures = []
    best = [System(name, lines[::nbest]) for name, lines in systems]  # the first of each list
    for name, metric in metrics:
        if len(systems) > 1 and resamples:
            measure = _bootstrapped(name, metric, best, references=references, resamples=resamples)
        else:
            scores = _values(metric, best, references)
            # After the scores, since only they tell sacrebleu the number of references, which is a
            # part of the signature.
            measure = Measure(name, str(metric.get_signature()), scores)
        measures.append(measure)
        if nbest > 1:
            oracles = [
                System(system, oracle(lines, references, metric, nbest))
                for system, lines in systems
            ]
            scores = _values(metric, oracles, references)
            measures.append(Measure(f"{name}, best of {nbest}", measure.signature, scores))
    return measures


def _values(
    metric: Metric, systems: Sequence[System], references: list[list[str]]
) -> dict[str, SystemScore]:
    """Return the score of each system, without comparing them."""
    return {
        name: SystemScore(metric.corpus_score(lines, references).score) for name, lines in systems
    }


def _bootstrapped(
    name: str,
    metric: Metric,
    systems: Sequence[System],
    *,
    references: list[list[str]],
    resamples: int,
) -> Measure:
    """Return a measure of several systems, each compared with the first.

    Args:
        name: name of the measure.
        metric: sacrebleu's measure.
        systems: systems with one line for each sentence.
        references: see `compare`.
        resamples: number of bootstrap samples.
    """
    test = PairedTest([*systems], {name: metric}, references, "bs", resamples)
    signatures, results = test()
    # sacrebleu chooses the key of the only metric itself.
    ((key, signature),) = signatures.items()
    compared: list[Any] = results[key]
    scores = {
        system: _score(result, equals_first=result.score == compared[0].score)
        for (system, _), result in zip(systems, compared, strict=True)
    }
    return Measure(name, str(signature), scores)


def _score(result: Any, *, equals_first: bool) -> SystemScore:
    """Return a result of the bootstrap, with p = 1 for the same score as the first system's.

    For equal scores sacrebleu, which counts differences above 0, may report the least possible p.

    Args:
        result: sacrebleu's result of a system; that of the first system has no p.
        equals_first: whether its score is that of the first system.
    """
    p_value = result.p_value
    if p_value is not None:
        p_value = 1.0 if equals_first else float(p_value)
    return SystemScore(
        value=float(result.score),
        mean=float(result.mean),
        half_width=float(result.ci),
        p_value=p_value,
    )
