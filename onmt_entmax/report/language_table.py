"""A table for people of the scores of each language, and of their average."""

from onmt_entmax.report.measures import LanguageScores, WordScore
from onmt_entmax.report.tables import aligned_table


def score_table(scores: LanguageScores, best: LanguageScores | None = None, nbest: int = 1) -> str:
    """Return the scores as an aligned table, accuracy in percent.

    Args:
        scores: scores of the first predictions.
        best: scores of the best of `nbest` predictions, if there are several.
        nbest: number of predictions for each word.
    """
    heading = ["language", "words", "accuracy", "edit distance"]
    if best is not None:
        heading += [f"best of {nbest}", "edit distance"]
    # Lists rather than mappings, since a language may be named average, too.
    names = [*scores.languages, "average"]
    rows = [
        [name, str(score.words), *_cells(score)]
        for name, score in zip(names, _scores(scores), strict=True)
    ]
    if best is not None:
        for row, score in zip(rows, _scores(best), strict=True):
            row += _cells(score)
    lines = aligned_table([heading, *rows]).splitlines()
    lines.insert(-1, "-" * len(lines[0]))
    return "\n".join(lines)


def _scores(scores: LanguageScores) -> list[WordScore]:
    """Return the scores of each language, and the average."""
    return [*scores.languages.values(), scores.average]


def _cells(score: WordScore) -> list[str]:
    """Return accuracy and edit distance as cells of the table."""
    return [f"{100 * score.accuracy:.2f}", f"{score.edit_distance:.3f}"]
