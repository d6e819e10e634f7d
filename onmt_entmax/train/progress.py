"""What people see of a run on stderr: a bar on a terminal, and lines.

Numbers have fixed widths, so that lines are aligned.
"""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tqdm import tqdm

from onmt_entmax.config import TrainingConfig
from onmt_entmax.errors import counted


class Progress(NamedTuple):
    """How much of a run is done, in the units of its limits."""

    step: int
    epochs: float  # passes over the data, such as 1.5
    seconds: float


class _Start(NamedTuple):
    """The first update of this process, from which its speed counts."""

    time: float  # of `time.monotonic`
    shares: dict[str, float]  # see `ProgressLines._shares`


# The exponential of more overflows.
_LARGEST_EXPONENT = 700
# Hours of a time that is shown as days.
_HOURS_IN_DAYS = 48


class ProgressLines:
    """Print a run as it goes on.

    Args:
        config: limits of the run, and the measure of the best checkpoint.
        alpha: of the output. Softmax has a perplexity; above 1 it may be infinite, and the support
            is of interest.
    """

    def __init__(self, config: TrainingConfig, alpha: float) -> None:
        self._config = config
        self._sparse = alpha > 1
        # In a log file, the bar would leave thousands of carriage returns.
        self._bar = tqdm(
            total=1,
            bar_format="{percentage:3.0f}%|{bar:8}| {desc}",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )
        self._facts: list[str] = []  # the last averages, as the bar shows them
        self._start: _Start | None = None

    def advance(self, at: Progress) -> None:
        """Show one more update."""
        shares = self._shares(at)
        if self._start is None:
            self._start = _Start(time.monotonic(), shares)
        if not self._bar.disable:
            facts = [self._place(at), *self._left(at), *self._facts]
            # A bar is not aligned with anything, and has little room.
            text = ", ".join(" ".join(fact.split()) for fact in facts)
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(max(shares.values(), default=0.0) - self._bar.n)

    def training(self, at: Progress, values: Mapping[str, float]) -> None:
        """Show averages over updates: a line, or from now on in the bar.

        Args:
            at: position of the run.
            values: as `Log.training` writes them.
        """
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
            self._print(at, self._place(at), self._facts)

    def validation(self, at: Progress, values: Mapping[str, float], best_step: int) -> None:
        """Print measures on the development set; see `Log.validation`."""
        facts = self._averages(values)
        if not self._sparse:
            loss = values["loss"]
            perplexity = math.exp(loss) if loss < _LARGEST_EXPONENT else math.inf
            facts.append(f"perplexity {perplexity:.2f}")
        for name in ("exact_match", "bleu"):
            if name in values:
                facts.append(measure_text(name, values[name]))
        if self._config.selection == "macro_accuracy":
            facts.append(measure_text("macro_accuracy", values["macro_accuracy"]))
        if "output_factor" in values:
            facts.append(f"output times {values['output_factor']:.2f}")
        facts.append("best so far" if best_step == at.step else f"best was step {best_step}")
        self._print(at, self._place(at, validation=True), facts)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()

    def _print(self, at: Progress, place: str, facts: Sequence[str]) -> None:
        """Print a line without breaking the bar."""
        line = "  ".join([time.strftime("%H:%M:%S"), place, *self._left(at), *facts])
        tqdm.write(line, file=sys.stderr)
        sys.stderr.flush()

    def _shares(self, at: Progress) -> dict[str, float]:
        """Return which part of each limit of the run is reached, by the option's name."""
        done = {
            "train_steps": at.step,
            "train_epochs": at.epochs,
            "max_seconds": at.seconds,
        }
        limits = {name: getattr(self._config, name) for name in done}
        return {name: min(done[name] / limit, 1.0) for name, limit in limits.items() if limit}

    def _place(self, at: Progress, validation: bool = False) -> str:
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

    def _left(self, at: Progress) -> list[str]:
        """Return the time to the first limit: that of `max_seconds`, or at the speed so far.

        The speed is that since the first update of this process, validations included. A list of
        one text, which is empty as long as nothing is known.
        """
        seconds = []
        if self._config.max_seconds is not None:
            seconds.append(max(self._config.max_seconds - at.seconds, 0.0))
        if self._start is not None:
            elapsed = time.monotonic() - self._start.time
            shares = self._shares(at)
            for name in shares.keys() - {"max_seconds"}:
                since_start = shares[name] - self._start.shares[name]
                if since_start > 0:
                    seconds.append(elapsed * (1 - shares[name]) / since_start)
        return [f"{_duration(min(seconds)):>7} left"] if seconds else []

    def _averages(self, values: Mapping[str, float]) -> list[str]:
        """Return averages over target tokens, a text each, as people read them."""
        facts = [
            f"loss {values['loss']:.4f}",
            f"token accuracy {values['token_accuracy']:5.1f} %",
        ]
        if self._sparse:
            facts.append(f"support {values['support']:6,.1f}")
        return facts


def measure_text(name: str, value: float) -> str:
    """Return a measure of a validation as people write it: `exact match 61.96 %`."""
    if name == "loss":
        return f"loss {value:.4f}"
    if name == "bleu":
        return f"BLEU {value:.2f}"
    return f"{name.replace('_', ' ')} {value:.2f} %"


def _duration(seconds: float) -> str:
    """Return a time as `3:05` minutes, `2:03:05` hours or `3 d 4 h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= _HOURS_IN_DAYS:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
