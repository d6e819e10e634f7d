"""The log of a training run: progress bar, log lines, metrics.jsonl and TensorBoard."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm import tqdm

from onmt_entmax.files import naming, write_text
from onmt_entmax.train.progress import Progress, Standing


class Measurements:
    """Running averages of the loss, accuracy, support size and speed, for the log."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._loss = self._tokens = self._correct = self._support = 0.0
        self._waited = 0.0
        self._since = time.monotonic()

    def waited(self, seconds: float) -> None:
        """Add the time that an update waited for its batches."""
        self._waited += seconds

    def add(self, loss: float, tokens: float, correct: float, support: float) -> None:
        """Add the sums over the target tokens of an update."""
        self._loss += loss
        self._tokens += tokens
        self._correct += correct
        self._support += support

    def take(self) -> dict[str, float]:
        """Return averages per target token since the last call, and tokens per second."""
        tokens = max(self._tokens, 1.0)
        seconds = time.monotonic() - self._since
        averages = {
            "loss": self._loss / tokens,
            "token_accuracy": 100 * self._correct / tokens,
            "support": self._support / tokens,
            "tokens_per_second": self._tokens / seconds,
            "input_percent": 100 * self._waited / seconds,
        }
        self._reset()
        return averages


class Records:
    """Write measurements as they come; close it, or use it in a `with` statement.

    Args:
        run: the run folder; lines of `metrics.jsonl` after step `first` are dropped.
        first: the step that training starts from.
        progress: texts for people.
        tensorboard: folder of the event files, or None.

    Raises:
        FileError: `metrics.jsonl` cannot be written, in every method that writes.
    """

    def __init__(self, run: Path, first: int, progress: Progress, tensorboard: Path | None) -> None:
        path = run / "metrics.jsonl"
        write_text(path, "".join(_lines_until(path, first)))
        self._path = path
        with naming(path):
            # Without a buffer, which would fail again when closed.
            self._metrics = FileIO(path, "a")
        # In a log file, the bar would leave thousands of carriage returns.
        self._bar = tqdm(
            total=1,
            bar_format="{percentage:3.0f}%|{bar:8}| {desc}",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )
        self._progress = progress
        self._facts: list[str] = []  # the last ones of training
        self._writer = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # slow to import

            self._writer = SummaryWriter(str(tensorboard), purge_step=first + 1)

    def advance(self, at: Standing) -> None:
        """Count one update."""
        share = self._progress.advance(at)
        if not self._bar.disable:
            facts = [self._progress.place(at), *self._progress.left(at), *self._facts]
            # A bar is not aligned with anything, and has little room.
            text = ", ".join(" ".join(fact.split()) for fact in facts)
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(share - self._bar.n)

    def training(self, at: Standing, values: Mapping[str, float]) -> None:
        """Log averages over the updates since the last call."""
        self._write("train", at.step, values, values)
        self._facts = self._progress.training(values)
        if self._bar.disable:
            self._say_at(at, self._progress.place(at), self._facts)

    def validation(self, at: Standing, values: Mapping[str, float], best_step: int) -> None:
        """Log measurements on the development set."""
        self._write("valid", at.step, values, values)
        place = self._progress.place(at, validation=True)
        self._say_at(at, place, self._progress.validation(values, at.step, best_step))

    def _say_at(self, at: Standing, place: str, facts: Sequence[str]) -> None:
        clock = time.strftime("%H:%M:%S")
        self.say("  ".join([clock, place, *self._progress.left(at), *facts]))

    def alphas(self, step: int, values: Mapping[str, Sequence[Sequence[float]]]) -> None:
        """Log the learned alphas of each kind of attention, by layer and head."""
        scalars = {
            f"{kind}/layer_{layer}/head_{head}": alpha
            for kind, layers in values.items()
            for layer, heads in enumerate(layers, 1)
            for head, alpha in enumerate(heads, 1)
        }
        self._write("alpha", step, values, scalars)

    def say(self, message: str) -> None:
        """Print a line without breaking the bar."""
        tqdm.write(message, file=sys.stderr)
        sys.stderr.flush()

    def _write(
        self, kind: str, step: int, values: Mapping[str, Any], scalars: Mapping[str, float]
    ) -> None:
        line = json.dumps({"kind": kind, "step": step, **values})
        with naming(self._path):
            self._metrics.write(f"{line}\n".encode())
        if self._writer is not None:
            for name, value in scalars.items():
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
