"""The checkpoint that a run continues from."""

from dataclasses import dataclass

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.train.saved_state import SavedState


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: SavedState | None  # its training state; None if only the weights are used

    @property
    def step(self) -> int:
        """Updates done."""
        return 0 if self.state is None else self.state["run"]["step"]
