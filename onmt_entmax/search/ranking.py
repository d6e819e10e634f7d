"""Keep the best finished hypotheses of each sentence, and the best one that was cut."""

import sys
from bisect import insort

from torch import Tensor

from onmt_entmax.search.certificate import Hypothesis
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.prefixes import Prefix
from onmt_entmax.search.sentences import Sentence
from onmt_entmax.search.stepper import SearchError


class Ranking:
    """Scores hypotheses, and keeps the best of each sentence."""

    def __init__(self, config: SearchConfig) -> None:
        self._penalties = config.penalties
        returns_all = config.all_found or config.n_best == 0
        self._most_returned = sys.maxsize if returns_all else config.n_best

    def add(
        self,
        sentence: Sentence,
        prefix: Prefix,
        log_prob: float,
        length: int,
        last_attention: Tensor | None,
    ) -> None:
        """Add a finished hypothesis to `sentence.best` if it is good enough.

        Args:
            sentence: the sentence.
            prefix: the hypothesis without its end symbol.
            log_prob: the log-probability of the hypothesis with its end symbol.
            length: tokens of the prefix, without the start symbol.
            last_attention: `(source length,)` attention of the end symbol's step; None if the model
                returns none.

        Raises:
            SearchError: if a coverage penalty is set and the model has no attention.
        """
        penalties, best = self._penalties, sentence.best
        attention, score = None, log_prob
        if penalties.needs_attention:
            attention = prefix.all_attention(last_attention)
            if attention is None:
                raise SearchError("a coverage penalty needs a model with attention")
        if penalties.change_scores:
            score = penalties.score(log_prob, length, attention, sentence.request.source_length)
        is_full = len(best) >= self._most_returned
        if is_full and (score, log_prob) <= (best[-1].score, best[-1].log_prob):
            return
        if attention is None:  # collected only now, since most hypotheses are not kept
            attention = prefix.all_attention(last_attention)
        hypothesis = Hypothesis(prefix.tokens(), log_prob, score, attention)
        insort(best, hypothesis, key=lambda other: (-other.score, -other.log_prob))
        del best[self._most_returned :]

    def add_unfinished(self, sentence: Sentence, prefix: Prefix, log_prob: float) -> None:
        """Make a cut prefix `sentence.unfinished` if it is more probable than the one there."""
        best = sentence.unfinished
        if best is None or log_prob > best.log_prob:
            attention = prefix.all_attention(None)
            sentence.unfinished = Hypothesis(prefix.tokens(), log_prob, log_prob, attention)
