"""The checkpoint that a run continues from."""

from dataclasses import dataclass
from typing import Any

from onmt_entmax.checkpoint import LoadedModel


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: dict[str, Any] | None  # its training state; None if only the weights are used

    @property
    def step(self) -> int:
        """Updates done."""
        return 0 if self.state is None else int(self.state["run"]["step"])
