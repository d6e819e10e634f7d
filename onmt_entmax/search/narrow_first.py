"""Sentences that follow a single prefix first, and start again with the full beam if they must.

With a softmax and `n_best` 1, a single live prefix mostly proves its result, and then no beam could
find a better one. It can prove nothing any more once what was dropped may be more probable than all
that was finished or kept: then the sentence starts again. `stop: first` proves nothing, and under
penalties the bound of what was dropped is not one of scores: there the full beam is used from the
start.
"""

from typing import Any

import torch

from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.sentences import Sentence
from onmt_entmax.search.stepper import Stepper


class NarrowFirst:
    """Decides which beam sentences have, and keeps those that wait to start again.

    Attributes:
        first_beam: live prefixes that a new sentence may have.
        waiting: sentences that wait to start again with the full beam.
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
        """Return whether a sentence has a single prefix, which can prove nothing any more.

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
        """Return the waiting sentences of one batch with the full beam, after their decoder state.

        They do not wait any more. At least one sentence must wait.
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
