"""The options of sampling, `Sampling`; `sampling.py` draws the outputs."""

from collections.abc import Iterator
from dataclasses import dataclass

from onmt_entmax.config import AnyOf, Checked, IsOn, option
from onmt_entmax.rules import FLAG, number, positive, whole

_TOPIC = "Sampling (OpenNMT-py's options from here on)"
_IS_RANDOM = AnyOf(IsOn("random_sampling_topk"), IsOn("random_sampling_topp"))


@dataclass(frozen=True)
class Sampling(Checked):
    """How to sample; each option of `translate` is `random_sampling_` and the name of a field."""

    topk: int = option(
        0, whole(-1, 10**6), "Draw n_best outputs, each token of the k best; -1: of all.", _TOPIC
    )
    """Draw among this many most probable next tokens (more at a tie); 0 and -1 for all."""
    topp: float = option(
        0.0, number(0, 1), "Draw each token of the best that reach this probability.", _TOPIC
    )
    """Draw among the fewest most probable next tokens that reach this probability; 0 for all."""
    temp: float = option(
        1.0, positive(1000), "Temperature: divides the scores.", _TOPIC, needs=_IS_RANDOM
    )
    """Temperature: scores are divided by it before softmax or entmax maps them to probabilities."""
    distinct: bool = option(
        False,
        FLAG,
        "Draw samples without replacement.",
        "Search and certificates",
        needs=_IS_RANDOM,
    )
    """Without replacement: no output twice."""
    seed: int = 0

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        if self.seed < 0:
            yield "seed", f"must not be negative, not {self.seed}"
