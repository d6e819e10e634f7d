"""What a search returns: hypotheses, and a certificate of what it has proven about them.

Let F be the finished hypotheses and D every prefix of positive probability that was not followed
to its end: pruned from the beam, cut by the length limit, or still alive when the search stopped.
Every sequence of the model is in F or starts with a member of D. A probability never grows along a
sequence, so no sequence outside F is more probable than `bound`, the largest probability in D.
`Proof` is this argument in code: a search tells it what it finishes, drops and excludes.

Floating point. Steps are computed in the model's precision and summed in float64; a step that
rounding lifts above log 1 counts as log 1. Adding a number <= 0 never gives a larger one, in
floating point too, so the bound holds exactly, without a margin, for the probabilities that this
run computed. In exact arithmetic 1 - sum over F is never below the bound, so the minimum of the two
would be no better. The same prefix computed in another batch may round differently, by about 3e-6
in a float32 log-probability: a `gap` below 1e-5 means "the argmax up to rounding".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

Level = Literal["exhaustive", "optimal", "none"]

ROUNDING = 1e-5  # error of a sum of float32 probabilities; no level depends on it


@dataclass(frozen=True)
class Certificate:
    """What is proven about the finished hypotheses F of one sentence.

    With constraints (bans, minimum length, ..., and always on padding and the start symbol), the
    level is about the sequences that they allow, and `excluded` says how much probability they rule
    out.
    """

    level: Level
    """`exhaustive`: F is the whole support. `optimal`: the first hypothesis is the most probable
    sequence of all (or ties with it). `none`: neither is proven; the bound still holds. Under
    penalties `optimal` is about scores and, with a length penalty, about sequences within the
    length limit."""
    log_bound: float
    """No sequence outside F has a log-probability above this; -inf if nothing was dropped."""
    gap: float
    """Score of the first hypothesis minus the best score that a sequence outside F may have (the
    bound itself without penalties); inf if nothing was dropped, else -inf if nothing finished.
    `optimal` means that it is not negative."""
    proven: int
    """How many of the returned hypotheses, from the first, have their rank among all sequences."""
    mass: float
    """Sum of the probabilities of F."""
    dropped: int
    """Prefixes pruned from the beam or still alive when the search stopped."""
    truncated: int
    """Prefixes cut by the length limit."""
    excluded: float
    """Probability that constraints ruled out at the prefixes that were followed: all of it if the
    level is `exhaustive`, else a lower bound."""
    log_excluded_bound: float
    """No excluded sequence has a log-probability above the larger of this and `log_bound`; -inf if
    the model gave every excluded token zero. If the first hypothesis is at least this, `optimal`
    also holds without the constraints, except under penalties: a longer excluded sequence may score
    more."""
    strict: bool
    """Exhaustive in the stricter reading of Peters, Niculae and Martins (2019): finished and live
    hypotheses together always fitted the beam. False after an exact search, which has no beam."""
    satisfied: tuple[float, float] | None = None
    """The least and the most probability of satisfying the sentence's automaton, whatever other
    constraints exclude: the same number if all is known; otherwise the most is at least the
    rounding of a sum. None without an automaton. Outputs that never end count as the prefix that
    decides."""

    @property
    def bound(self) -> float:
        """The bound as a probability."""
        return math.exp(self.log_bound)


@dataclass
class Proof:
    """The numbers about F and D of one sentence from which its certificate is made."""

    finished: int = 0
    """Size of F."""
    mass: float = 0.0
    """Sum of the probabilities of F."""
    dropped: int = 0
    """Prefixes in D that were pruned, or alive when the search stopped."""
    truncated: int = 0
    """Prefixes in D that the length limit cut."""
    log_bound: float = -math.inf
    """The largest log-probability in D."""
    excluded: float = 0.0
    """Probability of the prefixes that the request rules out; they are not in D."""
    log_excluded_bound: float = -math.inf
    """The largest log-probability of these."""
    strict: bool = True
    """Whether finished and live prefixes always fitted the beam."""
    satisfied: float = 0.0
    """Probability of the prefixes that decide that the sentence's automaton is satisfied, in the
    model without any request."""
    violated: float = 0.0
    """Probability of the prefixes that decide that it is violated, in that model."""
    undecided: bool = False
    """Whether another request excluded a token, which may decide nothing about the automaton."""

    def finish(self, log_prob: float) -> None:
        """Add a sequence to F."""
        self.finished += 1
        self.mass += math.exp(log_prob)

    def drop(self, prefixes: int, log_prob: float, cut: bool = False) -> None:
        """Add prefixes to D.

        Args:
            prefixes: how many.
            log_prob: the log-probability of the most probable one; -inf without any.
            cut: whether the length limit cut them.
        """
        if cut:
            self.truncated += prefixes
        else:
            self.dropped += prefixes
        self.log_bound = max(self.log_bound, log_prob)

    def exclude(self, mass: float, log_prob: float) -> None:
        """Count prefixes that the request rules out, by their total and largest probability."""
        self.excluded += mass
        self.log_excluded_bound = max(self.log_excluded_bound, log_prob)

    @property
    def satisfiable(self) -> float:
        """The most probability of satisfying the automaton while prefixes are undecided.

        At least `ROUNDING`: if rounding lifts `violated` to 1, the rest may still be above 0.
        """
        return max(1.0 - self.violated, ROUNDING)

    def certificate(
        self,
        scores: Sequence[float],
        attainable: float,
        has_automaton: bool,
    ) -> Certificate:
        """Return the certificate.

        Args:
            scores: the scores of the best hypotheses of F, best first.
            attainable: the best score of any sequence that starts with a prefix of log-probability
                `log_bound`; without penalties, `log_bound` itself.
            has_automaton: whether the sentence has an automaton, so that the certificate says how
                probable it is that outputs satisfy it.
        """
        complete = self.dropped + self.truncated == 0  # D is empty
        unseen = -math.inf if complete else attainable
        proven = sum(score >= unseen for score in scores)
        best = scores[0] if scores else -math.inf
        level: Level = "optimal" if proven else "none"
        return Certificate(
            level="exhaustive" if complete else level,
            log_bound=self.log_bound,
            gap=math.inf if complete else best - unseen,
            proven=proven,
            mass=self.mass,
            dropped=self.dropped,
            truncated=self.truncated,
            excluded=self.excluded,
            log_excluded_bound=self.log_excluded_bound,
            strict=complete and self.strict,
            satisfied=self._limits_of_satisfying(complete) if has_automaton else None,
        )

    def _limits_of_satisfying(self, complete: bool) -> tuple[float, float]:
        """Return the least and the most probability of satisfying the automaton.

        Args:
            complete: whether D is empty.
        """
        least = min(self.satisfied, 1.0)  # a sum of floats may exceed 1
        if complete and not self.undecided:
            return least, least
        return least, max(least, self.satisfiable)


@dataclass(frozen=True)
class Hypothesis:
    """One sequence, without start and end symbols."""

    tokens: tuple[int, ...]
    log_prob: float
    """Log-probability of the sequence and its end symbol, in nats."""
    score: float
    """What hypotheses are ranked by: `log_prob`, with penalties and length reward if any."""
    attention: torch.Tensor | None = None
    """`(steps, source length)`, the last step for the end symbol, if the stepper returns it."""

    @property
    def prob(self) -> float:
        """Probability; 0.0 if it is too small for a float."""
        return math.exp(self.log_prob)


@dataclass(frozen=True)
class SearchResult:
    """The result of searching one sentence, and its cost."""

    hypotheses: tuple[Hypothesis, ...]
    """Finished hypotheses, best score first; at most `n_best`."""
    certificate: Certificate
    finished: int
    """Size of F, of which `hypotheses` are the first."""
    unfinished: Hypothesis | None
    """Best truncated hypothesis, if none finished."""
    rows: int
    """Prefixes that the decoder computed."""
    support: int
    """Next tokens of positive probability, summed over these prefixes."""

    @property
    def only(self) -> bool:
        """Whether the support is proven to be a single hypothesis.

        Not if anything of positive probability was excluded, were it only padding:
        `Prediction.only`, which is about texts, does not count that.
        """
        certificate = self.certificate
        single = certificate.level == "exhaustive" and self.finished == 1
        return single and certificate.log_excluded_bound == -math.inf

    @property
    def best(self) -> Hypothesis | None:
        """First hypothesis, else the unfinished one, else None."""
        return self.hypotheses[0] if self.hypotheses else self.unfinished
