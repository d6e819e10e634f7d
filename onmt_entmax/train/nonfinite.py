"""What happens when a loss or a gradient is not a finite number."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.data.batch import Batch
from onmt_entmax.files import write_text
from onmt_entmax.train.config import TrainingError

MOST_SKIPPED = 100  # updates in a row; after as many the weights are surely spoilt


class NonfiniteRule:
    """Stops at an update that is not finite, or counts it as left out.

    Args:
        skip: leave such an update out; else stop at the first.
        run: the run folder, which receives the batches to look at.
        writes: whether this process is the one that writes files.
    """

    def __init__(self, skip: bool, run: Path, writes: bool) -> None:
        self._skip, self._run, self._writes = skip, run, writes
        self._in_a_row = 0

    def leaves_out(self, step: int, loss: float, norm: float, batches: Sequence[Batch]) -> bool:
        """Whether update number `step` must not be made.

        Args:
            step: counted from 1.
            loss: of the batches.
            norm: of the gradient of all weights together.
            batches: all batches of the update, whichever process computed them.

        Raises:
            TrainingError: it must not be skipped, or too many have been.
        """
        if math.isfinite(loss) and math.isfinite(norm):
            self._in_a_row = 0
            return False
        self._in_a_row += 1
        if self._skip and self._in_a_row < MOST_SKIPPED:
            return True
        path = self._run / f"nonfinite_step_{step}.json"
        if self._writes:
            _save(path, step, loss, norm, batches)
        what = f"the gradient norm is {norm}" if math.isfinite(loss) else f"the loss is {loss}"
        often = f" and {self._in_a_row} updates in a row were skipped" if self._skip else ""
        raise TrainingError(
            f"{what} at step {step}{often} (batch: {path}); lower the learning rate, or continue "
            f"from a checkpoint in {self._run}"
        )


def _save(path: Path, step: int, loss: float, norm: float, batches: Sequence[Batch]) -> None:
    """Write token ids and the numbers; JSON has no name for nan and inf, so those are words."""
    content = {
        "step": step,
        "loss": str(loss),
        "gradient_norm": str(norm),
        "batches": [_ids(batch) for batch in batches],
    }

    write_text(path, json.dumps(content) + "\n")


def _ids(batch: Batch) -> dict[str, object]:
    """The token ids of a batch, sentence by sentence, without padding."""
    assert batch.target is not None
    assert batch.target_lengths is not None
    sides = {
        "source": (batch.source, batch.source_lengths),
        "target": (batch.target, batch.target_lengths),
    }
    return {"lines": list(batch.indices)} | {
        side: [
            row[:length]
            for row, length in zip(ids[:, :, 0].t().tolist(), lengths.tolist(), strict=True)
        ]
        for side, (ids, lengths) in sides.items()
    }
