"""The quality of a part of the outputs, of which users keep those that a rule trusts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.report.records import Record, is_blank, level_of, output_of
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.strings.details import LEVELS


@dataclass(frozen=True)
class Coverage:
    """How many outputs a rule keeps, and the quality of these.

    Attributes:
        rule: the rule, such as `p >= 0.9`.
        share: share of the sentences whose outputs are kept, from 0 to 1.
        quality: quality of the kept outputs, as the caller measures it; None if none is kept.
    """

    rule: str
    share: float
    quality: float | None


@dataclass(frozen=True)
class CoverageCurve:
    """Coverage by several rules.

    Attributes:
        measure: name of the quality, such as `BLEU 13a`.
        points: coverage by each rule.
    """

    measure: str
    points: Sequence[Coverage]

    def as_dict(self) -> dict[str, Any]:
        """Return the curve as values for JSON."""
        return {"measure": self.measure, "points": [vars(point) for point in self.points]}


THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999)
"""Least probabilities of the outputs that are kept"""

_PROOFS = LEVELS[::-1]  # the weakest first


def coverage(
    records: Sequence[Record], quality: Callable[[Sequence[int]], float]
) -> list[Coverage]:
    """Return the share and quality of the outputs that each rule keeps.

    A rule sets the least probability of an output, or what must be proven about it. No rule keeps
    an output that `translate -abstain` left out.

    Args:
        records: records of a report, as `read_report` yields them.
        quality: returns the quality of the outputs with these numbers, such as their accuracy.
    """
    # Blank lines are not counted as sentences.
    sentences = [number for number, record in enumerate(records) if not is_blank(record)]
    answered = [number for number in sentences if not records[number].get("abstained")]
    curve = []
    for rule, keeps in _rules(records):
        numbers = [number for number in answered if keeps[number]]
        share = len(numbers) / max(len(sentences), 1)
        curve.append(Coverage(rule, share, quality(numbers) if numbers else None))
    return curve


def _rules(records: Sequence[Record]) -> Iterator[tuple[str, list[bool]]]:
    """Yield each rule, and for every record whether the rule keeps its output."""
    probabilities = [output_of(record).prob for record in records]
    for least in THRESHOLDS:
        name = f"p >= {least:g}" if least else "all"
        yield name, [probability >= least for probability in probabilities]
    proofs = [_PROOFS.index(level_of(record)) for record in records]
    for level, name in (
        ("optimal", "optimal or more"),
        ("exhaustive", "exhaustive"),
        ("only", "only one possible"),
    ):
        yield name, [proof >= _PROOFS.index(level) for proof in proofs]


def coverage_text(curve: Sequence[Coverage], measure: str) -> str:
    """Return a curve as a table; `measure` names the quality."""
    rows = [["kept", "share", measure]]
    for point in curve:
        quality = "" if point.quality is None else f"{point.quality:.2f}"
        rows.append([point.rule, f"{100 * point.share:.2f} %", quality])
    return aligned_table(rows)
