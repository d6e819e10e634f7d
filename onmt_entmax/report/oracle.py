"""The oracle of n-best lists, which picks the hypothesis nearest to the references from each."""

import copy

from sacrebleu.metrics import BLEU, TER
from sacrebleu.metrics.base import Metric


def oracle(lines: list[str], references: list[list[str]], metric: Metric, nbest: int) -> list[str]:
    """Return for each sentence the hypothesis with the best sentence-level score.

    Args:
        lines: `nbest` lines for each sentence. Blank lines after the first are never chosen, since
            they only fill up a shorter list.
        references: reference translations, one line for each sentence.
        metric: sacrebleu's measure; the smallest score is the best for TER, the largest for others.
        nbest: number of lines of a list.
    """
    if isinstance(metric, BLEU):
        metric = copy.copy(metric)
        metric.effective_order = True  # else BLEU is 0 for a sentence of fewer than four words
    sign = -1 if isinstance(metric, TER) else 1

    def best(sentence: int) -> str:
        """Return the best hypothesis of the sentence with this number, from 0."""
        first, *others = lines[sentence * nbest : (sentence + 1) * nbest]
        hypotheses = dict.fromkeys([first, *filter(None, others)])
        against = [texts[sentence] for texts in references]
        return max(hypotheses, key=lambda text: sign * metric.sentence_score(text, against).score)

    return [best(sentence) for sentence in range(len(references[0]))]
