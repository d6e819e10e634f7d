"""What a user asks of a search, before the vocabulary is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.exact import Budget

Method = Literal["beam", "exact", "enumerate"]


@dataclass(frozen=True)
class SearchTask:
    """A search by its method, limits and requests; tokens are still named by their text."""

    config: SearchConfig = field(default_factory=SearchConfig)
    """Constraints may name tokens by id; those named in the fields below are added."""
    method: Method = "beam"
    """`exact`: a beam search, ended by `config.stop` (not `first`), then a search on where the
    `n_best` are not proven; `enumerate` lists the support from the most probable string down."""
    budget: Budget = field(default_factory=Budget)
    """Of a sentence, for the last two."""
    mass: float = 1.0
    """Probability at which `enumerate` may stop."""
    verify: bool = False
    """Whether certified sentences are recomputed alone, in float64."""
    ban_unknown: bool = False
    """Whether `<unk>` is banned."""
    ignore_when_blocking: tuple[str, ...] = ()
    """Tokens that may repeat in spite of `block_ngram_repeat`."""

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ValueError(f"method must be beam, exact or enumerate, got {self.method!r}")
        if self.method == "exact" and self.config.stop == "first":
            raise ValueError("stop first goes with a beam search; exact needs another")
