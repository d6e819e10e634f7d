"""Stop or skip an update whose loss or gradient is inf or nan."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from onmt_entmax.data.batch import Batch
from onmt_entmax.files import write_text
from onmt_entmax.train.config import TrainingError

MAX_SKIPPED = 100  # updates in a row, after which training stops all the same


class NonfiniteRule:
    """Stop at a non-finite update, or skip it.

    Args:
        skip: skip such updates; otherwise stop at the first.
        run: the run folder, where the batches are saved for inspection.
        may_write: whether this process may write to the run folder now.
    """

    def __init__(self, skip: bool, run: Path, may_write: Callable[[], bool]) -> None:
        self._skip, self._run, self._may_write = skip, run, may_write
        self._in_a_row = 0

    def skips(self, step: int, loss: float, norm: float, batches: Sequence[Batch]) -> bool:
        """Return whether update number `step` must be skipped, by its loss and gradient norm.

        Raises:
            TrainingError: the update is not finite and skipping is off, or too many updates in a
                row were skipped.
        """
        if math.isfinite(loss) and math.isfinite(norm):
            self._in_a_row = 0
            return False
        self._in_a_row += 1
        if self._skip and self._in_a_row < MAX_SKIPPED:
            return True
        path = self._run / f"nonfinite_step_{step}.json"
        if self._may_write():
            _save(path, step, loss, norm, batches)
        what = f"the gradient norm is {norm}" if math.isfinite(loss) else f"the loss is {loss}"
        often = f" and {self._in_a_row} updates in a row were skipped" if self._skip else ""
        raise TrainingError(
            f"{what} at step {step}{often} (batch: {path}); lower the learning rate, or continue "
            f"from a checkpoint in {self._run}"
        )


def _save(path: Path, step: int, loss: float, norm: float, batches: Sequence[Batch]) -> None:
    """Write the token ids, the loss and the norm; as text, because JSON has no nan and inf."""
    content = {
        "step": step,
        "loss": str(loss),
        "gradient_norm": str(norm),
        "batches": [_ids(batch) for batch in batches],
    }
    write_text(path, json.dumps(content) + "\n")


def _ids(batch: Batch) -> dict[str, object]:
    """Return the token ids of each sentence of a batch, without padding."""
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
