"""What a search returns: hypotheses, and a certificate of what it has proven about them.

Let F be the finished hypotheses and D every prefix of positive probability that was not followed
to its end: pruned from the beam, cut by the length limit, or still alive when the search stopped.
Each string of the model is in F or starts with a member of D. A probability never grows along a
string, so no string outside F is more probable than `bound`, the largest probability in D.

Floating point. Steps are computed in the model's precision, summed in float64, and a step that
rounding lifts above log 1 counts as log 1; adding a number <= 0 never gives a larger one, in
floating point too, so the bound holds exactly for the probabilities as this run computed them,
without any margin. F and D share out the mass, hence 1 - sum over F is never below the bound in
exact arithmetic: taking the minimum of the two, with the margin for rounding that the second needs,
would give the same number, and only the first is used. The same prefix computed in another batch
may round differently (about 3e-6 in a float32 log-probability): a `gap` below that says "the argmax
up to rounding".
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch

Level = Literal["exhaustive", "optimal", "none"]


@dataclass(frozen=True)
class Certificate:
    """What is proven about the finished hypotheses F of one sentence.

    Tokens that the user's own wishes ruled out (bans, minimum length, ..., and always padding and
    the start symbol) change the question: the level speaks of the strings that were asked for, and
    `excluded` says what was ruled out.
    """

    level: Level
    """`exhaustive`: F is the whole support. `optimal`: the first hypothesis is the most probable
    string of all (or shares that place in a tie). `none`: neither is proven; the bound still
    holds. Under penalties `optimal` speaks of scores, and of strings within the length limit."""
    log_bound: float
    """No string outside F has a log-probability above this; -inf where nothing was dropped."""
    gap: float
    """Score of the first hypothesis minus the best score that a string outside F may have (the
    bound itself where scores are log-probabilities); inf where nothing was dropped, else -inf
    where nothing finished. `optimal` means that it is not negative."""
    proven: int
    """How many of the returned hypotheses, from the first, hold their rank among all strings."""
    mass: float
    """Sum of the probabilities of F."""
    dropped: int
    """Number of prefixes pruned from the beam or still alive when the search stopped."""
    truncated: int
    """Number of prefixes cut by the length limit."""
    excluded: float
    """Probability of what was excluded by request at the prefixes that were followed: all of it
    where the level is `exhaustive`, else at least so much."""
    log_excluded_bound: float
    """No excluded string has a log-probability above the larger of this and `log_bound`; -inf if
    the model gave every token excluded there zero. Where the first hypothesis is at least this,
    `optimal` also answers the question without the requests."""
    strict: bool
    """The paper's reading of an exhaustive search: finished and live hypotheses together always
    fitted the beam. False after an exact search, which goes on without one."""

    @property
    def bound(self) -> float:
        """The bound as a probability."""
        return math.exp(self.log_bound)


@dataclass(frozen=True)
class Hypothesis:
    """One string, without start and end symbols."""

    tokens: tuple[int, ...]
    log_prob: float
    """Log-probability of the string and its end symbol, in nats."""
    score: float
    """What hypotheses are ranked by: `log_prob`, after length and coverage penalties if any."""
    attention: torch.Tensor | None = None
    """(steps, source length), the last step being that of the end symbol; only where it was asked
    for."""

    @property
    def prob(self) -> float:
        """The probability; 0.0 where it is too small for a float."""
        return math.exp(self.log_prob)


@dataclass(frozen=True)
class SearchResult:
    """What was found for one sentence, and what it cost."""

    hypotheses: tuple[Hypothesis, ...]
    """Finished hypotheses, best score first; at most `n_best`."""
    certificate: Certificate
    finished: int
    """Size of F, of which `hypotheses` are the first."""
    unfinished: Hypothesis | None
    """Where nothing finished and the length limit cut something: the most probable prefix cut."""
    rows: int
    """How many prefixes the decoder computed."""
    support: int
    """How many next tokens of positive probability these rows had in total."""

    @property
    def only(self) -> bool:
        """Whether the model gives no other string than the first any probability, proven."""
        certificate = self.certificate
        alone = certificate.level == "exhaustive" and self.finished == 1
        return alone and certificate.log_excluded_bound == -math.inf

    @property
    def best(self) -> Hypothesis | None:
        """The first hypothesis, else the unfinished one, else None."""
        return self.hypotheses[0] if self.hypotheses else self.unfinished
