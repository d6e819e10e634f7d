"""The log of a training run: progress bar, log lines, metrics.jsonl and TensorBoard."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from types import TracebackType

from tqdm import tqdm

from onmt_entmax.files import naming, write_text


class Records:
    """Write measurements as they come; close it, or use it in a `with` statement.

    Args:
        run: the run folder; lines of `metrics.jsonl` after step `first` are dropped.
        first: the step that training starts from.
        total: the last step, or None.
        tensorboard: folder of the event files, or None.

    Raises:
        FileError: `metrics.jsonl` cannot be written, in every method that writes.
    """

    def __init__(self, run: Path, first: int, total: int | None, tensorboard: Path | None) -> None:
        path = run / "metrics.jsonl"
        write_text(path, "".join(_lines_until(path, first)))
        self._path = path
        with naming(path):
            # Without a buffer, which would fail again when closed.
            self._metrics = FileIO(path, "a")
        # In a log file, the bar would leave thousands of carriage returns.
        self._bar = tqdm(total=total, initial=first, unit="step", disable=not sys.stderr.isatty())
        self._writer = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # slow to import

            self._writer = SummaryWriter(str(tensorboard), purge_step=first + 1)

    def advance(self) -> None:
        """Count one update."""
        self._bar.update()

    def training(self, step: int, values: Mapping[str, float]) -> None:
        """Log averages over the updates since the last call."""
        self._write("train", step, values)
        if self._bar.disable:
            self.say(f"step {step}: {_readable(values)}")
        else:
            self._bar.set_postfix_str(_readable(values))

    def validation(self, step: int, values: Mapping[str, float]) -> None:
        """Log measurements on the development set."""
        self._write("valid", step, values)
        self.say(f"step {step}, validation: {_readable(values)}")

    def say(self, message: str) -> None:
        """Print a line without breaking the bar."""
        tqdm.write(message, file=sys.stderr)
        sys.stderr.flush()

    def _write(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        line = json.dumps({"kind": kind, "step": step, **values})
        with naming(self._path):
            self._metrics.write(f"{line}\n".encode())
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Flush and close everything."""
        self._bar.close()
        self._metrics.close()
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _readable(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def _lines_until(path: Path, step: int) -> list[str]:
    """Return the lines of an earlier run up to `step`."""
    if step == 0 or not path.is_file():
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line for line in file if line.endswith("}\n") and _step_of(line) <= step]


def _step_of(line: str) -> float:
    """Return the step of a line; infinite for a damaged line, as a killed run may leave."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
