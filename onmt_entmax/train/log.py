"""The log of a training run: progress bar, lines for people, metrics.jsonl and TensorBoard."""

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from onmt_entmax.config import TrainingConfig
from onmt_entmax.errors import counted
from onmt_entmax.files import json_line, naming, write_text


class Standing(NamedTuple):
    """How much of a run is done, in the units of its limits."""

    step: int
    epochs: float  # passes over the data, such as 1.5
    seconds: float


class Log:
    """Write measurements as they come; close it, or use `contextlib.closing`.

    Numbers for people have fixed widths, so that lines are aligned.

    Args:
        run: the run folder; lines of `metrics.jsonl` after step `first` are dropped.
        first: the step that training starts from.
        config: limits of the run, and the measure of the best checkpoint.
        alpha: of the output. Softmax has a perplexity; above 1 it may be infinite, and the support
            is of interest.
        tensorboard: folder of the event files, or None.

    Raises:
        FileError: `metrics.jsonl` cannot be written, in every method that writes.
    """

    def __init__(
        self, run: Path, first: int, config: TrainingConfig, alpha: float, tensorboard: str | None
    ) -> None:
        self._config, self._sparse = config, alpha > 1
        self._path = run / "metrics.jsonl"
        write_text(self._path, "".join(_lines_up_to(first, self._path)))
        with naming(self._path):
            # Without a buffer, which would fail again when closed.
            self._metrics = FileIO(self._path, "a")
        # In a log file, the bar would leave thousands of carriage returns.
        self._bar = tqdm(
            total=1,
            bar_format="{percentage:3.0f}%|{bar:8}| {desc}",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )
        self._facts: list[str] = []  # the last averages, as the bar shows them
        self._first: tuple[float, list[float]] | None = None  # at the first update
        self._reset()
        self._writer = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # slow to import

            self._writer = SummaryWriter(tensorboard, purge_step=first + 1)

    # --- sums of updates ---

    def _reset(self) -> None:
        """Begin new sums."""
        self._sums, self._waited = [0.0] * 4, 0.0
        self._since = time.monotonic()

    def waited(self, seconds: float) -> None:
        """Add the time that an update waited for its batches."""
        self._waited += seconds

    def paused(self, seconds: float) -> None:
        """Leave a validation out of the time of updates."""
        self._since += seconds

    def add(self, *values: float) -> None:
        """Add loss, target tokens, correct tokens and support of an update."""
        self._sums = [a + b for a, b in zip(self._sums, values, strict=True)]

    # --- what is logged ---

    def advance(self, at: Standing) -> None:
        """Count one update."""
        shares = self._shares(at)
        if self._first is None:
            self._first = time.monotonic(), shares
        if not self._bar.disable:
            facts = [self._place(at), *self._left(at), *self._facts]
            # A bar is not aligned with anything, and has little room.
            text = ", ".join(" ".join(fact.split()) for fact in facts)
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(max(shares, default=0.0) - self._bar.n)

    def training(self, at: Standing, values: Mapping[str, float]) -> None:
        """Log averages over the updates since the last call, with further values.

        Args:
            at: position of the run.
            values: `learning_rate`, `epoch`, and maybe `skipped` and `gpu_gb`.
        """
        seconds = time.monotonic() - self._since
        values = {
            **averages(*self._sums),
            "tokens_per_second": self._sums[1] / seconds,
            "input_percent": 100 * self._waited / seconds,
            **values,
        }
        self._reset()
        self._write("train", at.step, values, values)
        self._facts = [
            *self._averages(values),
            f"lr {values['learning_rate']:<8.3g}",
            f"{values['tokens_per_second']:7,.0f} tokens/s",
        ]
        if "skipped" in values:
            self._facts.append(f"{counted(int(values['skipped']), 'update')} skipped")
        if "gpu_gb" in values:
            self._facts.append(f"GPU memory {values['gpu_gb']:.1f} GB")
        if self._bar.disable:
            self._say(at, self._place(at), self._facts)

    def validation(self, at: Standing, values: Mapping[str, float], best_step: int) -> None:
        """Log measurements on the development set.

        Args:
            at: position of the run.
            values: measures by name.
            best_step: step of the best validation so far.
        """
        self._write("valid", at.step, values, values)
        facts = self._averages(values)
        if not self._sparse:
            loss = values["loss"]
            facts.append(f"perplexity {math.exp(loss) if loss < 700 else math.inf:.2f}")
        for name in ("exact_match", "bleu"):
            if name in values:
                facts.append(measure(name, values[name]))
        if self._config.selection == "macro_accuracy":
            facts.append(measure("macro_accuracy", values["macro_accuracy"]))
        facts.append("best so far" if best_step == at.step else f"best was step {best_step}")
        self._say(at, self._place(at, validation=True), facts)

    def alphas(self, step: int, values: Mapping[str, Sequence[Sequence[float]]]) -> None:
        """Log the learned alphas of each kind of attention, by layer and head."""
        scalars = {
            f"{kind}/layer_{layer}/head_{head}": alpha
            for kind, layers in values.items()
            for layer, heads in enumerate(layers, 1)
            for head, alpha in enumerate(heads, 1)
        }
        self._write("alpha", step, values, scalars)

    def close(self) -> None:
        """Flush and close everything."""
        self._bar.close()
        self._metrics.close()
        if self._writer is not None:
            self._writer.close()

    def _write(
        self, kind: str, step: int, values: Mapping[str, Any], scalars: Mapping[str, float]
    ) -> None:
        """Write values to `metrics.jsonl`, and scalars to TensorBoard."""
        line = json_line({"kind": kind, "step": step, **values})
        with naming(self._path):
            self._metrics.write(line.encode())
        if self._writer is not None:
            for name, value in scalars.items():
                self._writer.add_scalar(f"{kind}/{name}", value, step)

    # --- what people read ---

    def _say(self, at: Standing, place: str, facts: Sequence[str]) -> None:
        """Print a line without breaking the bar."""
        line = "  ".join([time.strftime("%H:%M:%S"), place, *self._left(at), *facts])
        tqdm.write(line, file=sys.stderr)
        sys.stderr.flush()

    def _shares(self, at: Standing) -> list[float]:
        """Return which part of each limit is reached, in the order of `Standing`."""
        limits = (self._config.train_steps, self._config.train_epochs, self._config.max_seconds)
        return [
            min(done / limit, 1.0) if limit else 0.0 for done, limit in zip(at, limits, strict=True)
        ]

    def _place(self, at: Standing, validation: bool = False) -> str:
        """Return the epoch, counted from 1, and the step: `epoch 3     step  500/4000`."""
        steps, epochs = self._config.train_steps, self._config.train_epochs
        all_epochs = f"/{epochs}" if epochs else ""
        all_steps = f"/{steps}" if steps else ""
        epoch = "validation" if validation else f"epoch {math.ceil(at.epochs)}{all_epochs}"
        width = len("validation")
        if epochs:
            width = max(width, len(f"epoch {epochs}/{epochs}"))
        digits = len(str(steps)) if steps else 6
        return f"{epoch:{width}}  step {at.step:{digits}}{all_steps}"

    def _left(self, at: Standing) -> list[str]:
        """Return the time to the first limit: that of `max_seconds`, or at the speed so far.

        The speed is that since this process began, validations included.
        """
        limit, seconds = self._config.max_seconds, []
        if limit is not None:
            seconds.append(max(limit - at.seconds, 0.0))
        if self._first is not None:
            began, first_shares = self._first
            elapsed = time.monotonic() - began
            # Of the limits of updates: the last is that of the time.
            for share, first_share in zip(self._shares(at)[:2], first_shares[:2], strict=True):
                if share > first_share:
                    seconds.append(elapsed * (1 - share) / (share - first_share))
        return [f"{duration(min(seconds)):>7} left"] if seconds else []

    def _averages(self, values: Mapping[str, float]) -> list[str]:
        """Return the averages over target tokens as people read them."""
        facts = [
            f"loss {values['loss']:.4f}",
            f"token accuracy {values['token_accuracy']:5.1f} %",
        ]
        if self._sparse:
            facts.append(f"support {values['support']:6,.1f}")
        return facts


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
    except (ValueError, KeyError, TypeError):
        return math.inf


def averages(loss: float, tokens: float, correct: float, support: float) -> dict[str, float]:
    """Return averages over target tokens, given the sums."""
    tokens = max(tokens, 1.0)
    return {
        "loss": loss / tokens,
        "token_accuracy": 100 * correct / tokens,
        "support": support / tokens,
    }


def measure(name: str, value: float) -> str:
    """Return a measure of a validation as people write it: `exact match 61.96 %`."""
    if name == "loss":
        return f"loss {value:.4f}"
    if name == "bleu":
        return f"BLEU {value:.2f}"
    return f"{name.replace('_', ' ')} {value:.2f} %"


def duration(seconds: float) -> str:
    """Return a time as `3:05` minutes, `2:03:05` hours or `3 d 4 h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
