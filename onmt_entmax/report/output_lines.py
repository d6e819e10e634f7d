"""The lines that `translate` writes for an answer: texts, scores and alignments.

Each function returns `n_best` entries, so that line N of each file belongs to the same output. The
entries of the best hypotheses, or of the samples, come first, and blank ones fill the rest.
"""

import re

from onmt_entmax.report.answers import Answer, Decoded


def one_line(text: str) -> str:
    """Return a text as one line of a file, with spaces for line ends.

    Tokens have no line ends, but undoing a transform may make some, and a stranger's report may
    have them.
    """
    return re.sub(r"[\r\n]", " ", text)


def output_texts(answer: Answer, n_best: int) -> list[str]:
    """Return the texts, blank where there is no hypothesis."""
    texts = [decoded.text for decoded in _written(answer, n_best)]
    texts += [drawn.text for drawn in answer.samples or ()]
    if not texts and answer.unfinished is not None and not answer.abstained:
        texts = [answer.unfinished]
    return texts + [""] * (n_best - len(texts))


def output_scores(answer: Answer, n_best: int) -> list[float | None]:
    """Return the scores of the texts; without penalties, they are log-probabilities.

    The score of an unfinished text and of a blank line is None.
    """
    scores: list[float | None] = [decoded.hypothesis.score for decoded in _written(answer, n_best)]
    scores += [drawn.sample.log_prob for drawn in answer.samples or ()]
    return scores + [None] * (n_best - len(scores))


def output_alignments(answer: Answer, n_best: int) -> list[str]:
    """Return the alignments of the texts in Pharaoh's format, blank where there is none."""
    lines = [
        "" if decoded.alignment is None else decoded.alignment.pharaoh()
        for decoded in _written(answer, n_best)
    ]
    return lines + [""] * (n_best - len(lines))


def _written(answer: Answer, n_best: int) -> list[Decoded]:
    """Return the hypotheses whose texts are written: at most `n_best`, the best first."""
    if answer.abstained:
        return []
    if answer.mbr is None:
        return list(answer.hypotheses[:n_best])
    # If several hypotheses have one text, the last one counts in a dict. In reverse order, that is
    # the most probable one.
    by_text = {decoded.text: decoded for decoded in reversed(answer.hypotheses)}
    return [by_text[text] for text in answer.mbr.texts[:n_best]]
