"""Write the scores of `bleu` as a table and as JSON."""

from collections.abc import Sequence
from typing import Any

from onmt_entmax.report.system_comparison import Measure, SystemScore
from onmt_entmax.report.tables import aligned_table


def scores_table(measures: Sequence[Measure]) -> str:
    """Return a table with a row for each system, and the signatures below it.

    Args:
        measures: measures of the same systems; at least one.
    """
    heading = ["system", *(measure.name for measure in measures)]
    rows = [
        [system, *(_cell(measure.scores[system]) for measure in measures)]
        for system in measures[0].scores
    ]
    # All columns are aligned to the left, since their numbers vary in length.
    aligned = aligned_table([heading, *rows], left=len(heading))
    signatures = [f"{measure.name}: {measure.signature}" for measure in measures]
    return "\n".join([aligned, "", *signatures])


def _cell(score: SystemScore) -> str:
    """Return a score, and in parentheses the results of a comparison, in the order of sacrebleu.

    In `35.21 (35.18 +- 0.72, p 0.0120)`, the results are the mean of the bootstrap samples, half of
    the confidence interval around this mean, and the p-value.
    """
    added = []
    if score.mean is not None and score.half_width is not None:
        added.append(f"{score.mean:.2f} +- {score.half_width:.2f}")
    if score.p_value is not None:
        added.append(f"p {score.p_value:.4f}")
    return f"{score.value:.2f}" + (f" ({', '.join(added)})" if added else "")


def scores_record(measures: Sequence[Measure], detokenized: str | None) -> dict[str, Any]:
    """Return the content of the JSON file: scores by system and measure, and signatures.

    Args:
        measures: measures of the same systems; at least one.
        detokenized: language by whose rules the translations were joined to text; None: they were
            not joined.
    """
    content: dict[str, Any] = {"detokenized": detokenized} if detokenized else {}
    content["systems"] = {
        system: {measure.name: _known_fields(measure.scores[system]) for measure in measures}
        for system in measures[0].scores
    }
    content["signatures"] = {measure.name: measure.signature for measure in measures}
    return content


def _known_fields(score: SystemScore) -> dict[str, float]:
    """Return the fields of a score that are known: only a compared score has a p-value."""
    return {name: value for name, value in vars(score).items() if value is not None}
