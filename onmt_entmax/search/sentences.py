"""The state of one sentence in a search: request, hypotheses, proof and cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from onmt_entmax.search.automaton import SATISFIED, VIOLATED
from onmt_entmax.search.certificate import Hypothesis, Proof
from onmt_entmax.search.request import SentenceRequest


class Start(NamedTuple):
    """Where the search of a sentence began, so that it can start again with a full beam."""

    decoder_state: Any
    """The state of all sentences of its batch before the first step."""
    row: int
    """The sentence's row in this state."""


@dataclass(eq=False)
class Sentence:
    """A sentence that is searched; the search changes the fields from `best` on."""

    number: int
    """The number of the sentence, in the order in which the search gets them."""
    request: SentenceRequest
    """What its output must satisfy."""
    beam: int = 1
    """The most live prefixes that it may have."""
    start: Start | None = None
    """Where it began; None if it cannot start again."""
    best: list[Hypothesis] = field(default_factory=list)
    """The finished hypotheses that are returned, best score first."""
    unfinished: Hypothesis | None = None
    """The most probable prefix that the length limit cut."""
    proof: Proof = field(default_factory=Proof)
    """What has finished and what was dropped or excluded so far, for the certificate."""
    rows: int = 0
    """Prefixes that the decoder computed."""
    support: int = 0
    """Next tokens of positive probability, summed over these."""

    def __post_init__(self) -> None:
        # All outputs may satisfy an expression, or none: then the empty prefix decides.
        automaton = self.request.automaton
        if automaton is not None:
            self.proof.satisfied = float(automaton.start == SATISFIED)
            self.proof.violated = float(automaton.start == VIOLATED)

    def score(self, rank: int) -> float:
        """Return the score of the hypothesis of a rank, from 1; -inf if fewer have finished."""
        return self.best[rank - 1].score if len(self.best) >= rank else -math.inf

    def started_again(self, beam: int) -> Sentence:
        """Return the sentence as it was at first, with another beam; only its cost is kept."""
        return Sentence(self.number, self.request, beam, rows=self.rows, support=self.support)
