"""The record of a training run: metrics.jsonl and TensorBoard, for programs.

Each record is also shown to people, by `ProgressLines`.
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

from onmt_entmax.config import TrainingConfig
from onmt_entmax.files import json_line, naming, write_text
from onmt_entmax.train.progress import Progress
from onmt_entmax.train.progress_lines import ProgressLines
from onmt_entmax.train.sums import Sums


class Log:
    """Writes measurements as they come; must be closed, see `contextlib.closing`.

    The trainer calls `waited`, `add` and `advance` for each update, and `training` after every
    `report_every` updates, which writes averages over them. `paused` takes the time of a validation
    out of these. `validation` and `alphas` write at once.

    Args:
        run: the run folder.
        first: the step that training starts from. TensorBoard leaves out what its files have of
            later ones.
        kept: `metrics.jsonl` keeps its lines up to this step: `first`, if they are of the run that
            is continued, else 0.
        config: limits of the run, and the measure of the best checkpoint.
        alpha: the alpha of the output.
        tensorboard: folder of the event files, or None.

    Raises:
        FileError: `metrics.jsonl` cannot be written, in every method that writes; or the folder of
            the event files cannot be made.
    """

    def __init__(
        self,
        run: Path,
        *,
        first: int,
        kept: int,
        config: TrainingConfig,
        alpha: float,
        tensorboard: str | None,
    ) -> None:
        self._path = run / "metrics.jsonl"
        write_text(self._path, "".join(_lines_up_to(kept, self._path)))
        with naming(self._path):
            # Without a buffer, which would fail again when closed.
            self._metrics = FileIO(self._path, "a")
        self._lines = ProgressLines(config, alpha)
        # Of the updates since the last averages were written:
        self._sums = Sums()
        self._waited = 0.0  # seconds that they waited for batches
        self._since = time.monotonic()  # when they began; later by the length of each validation
        self._writer = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # slow to import

            with naming(Path(tensorboard)):
                self._writer = SummaryWriter(tensorboard, purge_step=first + 1)

    def waited(self, seconds: float) -> None:
        """Add the time that an update waited for its batches."""
        self._waited += seconds

    def paused(self, seconds: float) -> None:
        """Leave a validation out of the time of updates."""
        self._since += seconds

    def add(self, *, loss: float, tokens: float, correct: float, support: float) -> None:
        """Add the sums of an update; see `Sums`."""
        self._sums.add(loss=loss, tokens=tokens, correct=correct, support=support)

    def advance(self, at: Progress) -> None:
        """Count one update."""
        self._lines.advance(at)

    def training(
        self,
        at: Progress,
        *,
        learning_rate: float,
        epoch: int,
        skipped: int | None = None,
        gpu_gb: float | None = None,
    ) -> None:
        """Log averages over the updates since the last call.

        Args:
            at: position of the run.
            learning_rate: that of the last update.
            epoch: complete passes over the data.
            skipped: updates of the run that were not finite; None leaves it out.
            gpu_gb: the most memory that PyTorch has reserved on a GPU so far; None leaves it out.
        """
        seconds = time.monotonic() - self._since
        values: dict[str, float] = {
            **self._sums.averages(),
            "tokens_per_second": self._sums.tokens / seconds,
            "input_percent": 100 * self._waited / seconds,
            "learning_rate": learning_rate,
            "epoch": epoch,
        }
        if skipped is not None:
            values["skipped"] = skipped
        if gpu_gb is not None:
            values["gpu_gb"] = gpu_gb
        self._sums = Sums()
        self._waited = 0.0
        self._since = time.monotonic()
        self._write("train", at.step, values)
        self._lines.training(at, values)

    def validation(self, at: Progress, values: Mapping[str, float], best_step: int) -> None:
        """Log measurements on the development set.

        Args:
            at: position of the run.
            values: measures by name.
            best_step: step of the best validation so far.
        """
        self._write("valid", at.step, values)
        self._lines.validation(at, values, best_step)

    def alphas(self, step: int, values: Mapping[str, Sequence[Sequence[float]]]) -> None:
        """Log the learned alphas of each kind of attention, by layer and head."""
        scalars = {
            f"{kind}/layer_{layer}/head_{head}": alpha
            for kind, layers in values.items()
            for layer, heads in enumerate(layers, 1)
            for head, alpha in enumerate(heads, 1)
        }
        self._write("alpha", step, values, scalars=scalars)

    def close(self) -> None:
        """Flush and close everything."""
        self._lines.close()
        self._metrics.close()
        if self._writer is not None:
            self._writer.close()

    def _write(
        self,
        kind: str,
        step: int,
        values: Mapping[str, Any],
        scalars: Mapping[str, float] | None = None,
    ) -> None:
        """Write a record as a line of `metrics.jsonl`, and to TensorBoard.

        Args:
            kind: `train`, `valid` or `alpha`.
            step: the step of the run.
            values: numbers, or lists of them, by name.
            scalars: the same as single numbers, for TensorBoard; None: all values are.
        """
        line = json_line({"kind": kind, "step": step, **values})
        rest = memoryview(line.encode())
        with naming(self._path):
            while rest:  # without a buffer, a call may write only the beginning
                rest = rest[self._metrics.write(rest) :]
        if self._writer is not None:
            for name, value in (values if scalars is None else scalars).items():
                self._writer.add_scalar(f"{kind}/{name}", value, step)


def _lines_up_to(step: int, path: Path) -> list[str]:
    """Return the lines of an earlier run up to a step, without damaged ones; none for step 0."""
    if not step or not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    return [line for line in lines if line.endswith("}\n") and _step_of(line) <= step]


def _step_of(line: str) -> float:
    """Return the step of a line of `metrics.jsonl`, infinite for a damaged one."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return math.inf
