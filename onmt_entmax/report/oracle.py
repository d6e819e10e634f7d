"""The oracle of n-best lists: of each list the hypothesis that is nearest to the references."""

import copy

from sacrebleu.metrics import BLEU, TER
from sacrebleu.metrics.base import Metric


def oracle(lines: list[str], references: list[list[str]], metric: Metric, nbest: int) -> list[str]:
    """Return for each sentence the hypothesis with the best sentence-level score.

    Blank lines fill up a list of fewer hypotheses; they are chosen only if the first is blank.
    """
    if isinstance(metric, BLEU):
        metric = copy.copy(metric)
        metric.effective_order = True  # a sentence without any 4-gram is not 0
    sign = -1 if isinstance(metric, TER) else 1

    def best(sentence: int) -> str:
        one, *others = lines[sentence * nbest : (sentence + 1) * nbest]
        hypotheses = dict.fromkeys([one, *filter(None, others)])
        against = [texts[sentence] for texts in references]
        return max(hypotheses, key=lambda text: sign * metric.sentence_score(text, against).score)

    return [best(sentence) for sentence in range(len(references[0]))]
