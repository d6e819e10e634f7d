"""Search each sentence with a single prefix first, and again with the full beam where that fails.

With a softmax and `n_best` 1, a search that follows a single prefix mostly proves its result, and
no beam could then find a better one. It fails as soon as something that it dropped may be more
probable than everything that it finished or kept: the sentence starts again with the full beam.

Two kinds of searches use the full beam from the start: those with `stop: first`, which prove
nothing, and those with penalties, where a bound on log-probabilities is not one on scores.
"""

from typing import Any

import torch

from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.sentences import Sentence
from onmt_entmax.search.stepper import Stepper


class NarrowFirst:
    """Chooses the beam of new sentences, and keeps the sentences that wait to start again.

    Attributes:
        first_beam: the most live prefixes of a new sentence.
        waiting: the sentences that wait to start again with the full beam.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        self._stepper = stepper
        self._full_beam = config.beam_size
        one_prefix_may_prove_it = (
            stepper.dense
            and config.n_best == 1
            and config.stop != "first"
            and not config.penalties.change_scores
        )
        self.first_beam = 1 if one_prefix_may_prove_it else config.beam_size
        self.waiting: list[Sentence] = []

    @property
    def may_start_again(self) -> bool:
        """Whether new sentences may start again, so that they must remember where they began."""
        return self.first_beam < self._full_beam

    def must_start_again(self, sentence: Sentence, best: float) -> bool:
        """Return whether a sentence follows a single prefix, and can no longer prove its result.

        Args:
            sentence: the sentence.
            best: the largest log-probability of what it has finished or kept.
        """
        return sentence.beam < self._full_beam and best < sentence.proof.log_bound

    def is_time(self, active: int) -> bool:
        """Return whether joining the waiting sentences costs less than letting them wait longer.

        Args:
            active: number of active sentences.
        """
        if not self.waiting:
            return False
        return not active or (self._stepper.can_join and len(self.waiting) >= active)

    def start_again(self) -> tuple[Any, list[Sentence]]:
        """Start the waiting sentences of one batch again; at least one sentence must wait.

        Returns:
            The decoder state of these sentences before their first step, and the sentences, with
            the full beam. They no longer wait.
        """
        first = self.waiting[0].start
        assert first is not None, "only a sentence that has its start waits"
        rows, sentences, waiting = [], [], []
        for sentence in self.waiting:
            start = sentence.start
            if start is not None and start.decoder_state is first.decoder_state:
                rows.append(start.row)
                sentences.append(sentence.started_again(self._full_beam))
            else:
                waiting.append(sentence)
        self.waiting = waiting
        return self._stepper.select(first.decoder_state, torch.tensor(rows)), sentences
