"""The options of a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.penalties import Penalties

Stop = Literal["exhaustive", "optimal", "first"]


@dataclass(frozen=True)
class SearchConfig:
    """How to search; names are OpenNMT-py's where it has the option.

    Raises:
        ValueError: if a value is out of range.
    """

    beam_size: int = 5
    """Live prefixes kept per sentence and step."""
    n_best: int = 1
    """Hypotheses returned per sentence; 0 returns all that finished."""
    max_length: int = 100
    """Longest string, without its end symbol; longer prefixes are cut, and the certificate counts
    them."""
    stop: Stop = "exhaustive"
    """When a sentence is done. `exhaustive`: when nothing is alive, or the beam has overflowed
    (then the support cannot be exhausted any more) and the next rule holds. `optimal`: when no live
    prefix is more probable than the n-th best finished hypothesis (with penalties: can score more
    at any length). `first`: when none is more probable than the best one, and as many have
    finished as the beam has places, or n (with penalties: when none scores more now); OpenNMT-py's
    habit. Without penalties what cannot beat the n-th best is dropped, and nothing waited for."""
    constraints: Constraints = field(default_factory=Constraints)
    """Which strings are asked for."""
    penalties: Penalties = field(default_factory=Penalties)
    """What else than their probability strings are ranked by."""

    def __post_init__(self) -> None:
        for name, least in (("beam_size", 1), ("n_best", 0), ("max_length", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.stop not in ("exhaustive", "optimal", "first"):
            raise ValueError(f"stop must be exhaustive, optimal or first, got {self.stop!r}")
        if not self.penalties.is_finite(self.max_length):
            raise ValueError(
                f"alpha {self.penalties.alpha:g} is too large: the length penalty of "
                f"{self.max_length} tokens is not a number any more"
            )
