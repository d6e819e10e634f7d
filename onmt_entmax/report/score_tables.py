"""Scores of predicted strings as tables for people, in percent."""

from onmt_entmax.report.string_counts import LevelCounts, QueryCounts, Scores
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.strings.details import LEVELS

_ERROR_RATES = {"symbols": "PER", "characters": "CER", "text": "word errors"}
"""Names of the error rate, by the kind of the unit"""


def scores_text(scores: Scores) -> str:
    """Return accuracy and error rate of each language as a table.

    If the predictions have certificates, a table of these follows; if they have probabilities, a
    line on them.
    """
    tables = [_rates_table(scores)]
    if scores.total.levels:
        heading = "certificates: percent of the queries, and of these right"
        tables.append(f"{heading}\n\n{_levels_table(scores)}")
    if scores.probabilities.predictions:
        tables.append(scores.probabilities.text())
    return "\n\n".join(tables)


def _rates_table(scores: Scores) -> str:
    """Return accuracy and error rate of each language, and their averages.

    For symbols, such as phones, the word error rate (WER) stands between the two.
    """
    has_wer = scores.unit.kind == "symbols"
    heading = ["language", "queries", "accuracy"]
    if has_wer:
        heading.append("WER")
    rows = [[*heading, _ERROR_RATES[scores.unit.kind]]]
    for language, counts in scores.languages.items():
        cells = _rate_cells(counts.accuracy, counts.error_rate, has_wer=has_wer)
        rows.append([language, str(counts.queries), *cells])
    averages = _rate_cells(scores.accuracy, scores.error_rate, has_wer=has_wer)
    rows.append(["average", str(scores.total.queries), *averages])
    lines = aligned_table(rows).splitlines()
    lines.insert(-1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def _rate_cells(accuracy: float, error_rate: float, *, has_wer: bool) -> list[str]:
    """Return rates in percent; if `has_wer`, the word error rate stands between them."""
    wer = [f"{100 - 100 * accuracy:.2f}"] if has_wer else []
    return [f"{100 * accuracy:.2f}", *wer, f"{100 * error_rate:.2f}"]


def _levels_table(scores: Scores) -> str:
    """Return for each language which certificates its queries have, and how many are right."""
    rows = [["language", *(heading for level in LEVELS for heading in (level, "right"))]]
    for language, counts in scores.languages.items():
        rows.append([language, *_level_cells(counts)])
    if len(scores.languages) > 1:
        rows.append(["all", *_level_cells(scores.total)])
    return aligned_table(rows)


def _level_cells(counts: QueryCounts) -> list[str]:
    """Return for each level the share of the queries, and how many of these are right."""
    cells = []
    for name in LEVELS:
        level = counts.levels.get(name, LevelCounts())
        cells.append(f"{100 * level.queries / max(counts.queries, 1):.2f}")
        cells.append(f"{100 * level.right / level.queries:.2f}" if level.queries else "-")
    return cells
