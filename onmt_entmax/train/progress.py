"""What people read about a run while it trains: its position, its measures and the time left."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import NamedTuple

from onmt_entmax.errors import counted
from onmt_entmax.train.config import TrainingConfig


class Standing(NamedTuple):
    """How much of a run is done, in the units of its limits."""

    step: int
    epochs: float  # passes over the data, such as 1.5
    seconds: float


class Progress:
    """Texts about a run. Numbers have fixed widths, so that lines are aligned.

    Args:
        config: limits of the run, and the measure of the best checkpoint.
        alpha: of the output. Softmax has a perplexity; above 1 it may be infinite, and the support
            is of interest.
    """

    def __init__(self, config: TrainingConfig, alpha: float) -> None:
        self._config, self._sparse = config, alpha > 1
        self._since: tuple[float, list[float]] | None = None  # time and shares at first

    def _shares(self, at: Standing) -> list[float]:
        """Return which part of each limit is reached."""
        limits = (self._config.train_steps, self._config.train_epochs, self._config.max_seconds)
        return [min(done / limit, 1.0) for done, limit in zip(at, limits, strict=True) if limit]

    def advance(self, at: Standing) -> float:
        """Note an update; return which part of the run is done, by the nearest limit."""
        shares = self._shares(at)
        if self._since is None:
            self._since = time.monotonic(), shares
        return max(shares, default=0.0)

    def place(self, at: Standing, validation: bool = False) -> str:
        """Return the epoch, counted from 1, and the step: `epoch 3     step  500/4000`."""
        steps, epochs = self._config.train_steps, self._config.train_epochs
        of_epochs = f"/{epochs}" if epochs else ""
        of_steps = f"/{steps}" if steps else ""
        epoch = "validation" if validation else f"epoch {math.ceil(at.epochs)}{of_epochs}"
        width = max(len("validation"), len(f"epoch {epochs}/{epochs}") if epochs else 0)
        return f"{epoch:{width}}  step {at.step:{len(of_steps) - 1 if steps else 6}}{of_steps}"

    def training(self, values: Mapping[str, float]) -> list[str]:
        """Return the averages of some updates."""
        facts = [
            *self._averages(values),
            f"lr {values['learning_rate']:<8.3g}",
            f"{values['tokens_per_second']:7,.0f} tokens/s",
        ]
        if values.get("skipped"):
            facts.append(f"{counted(int(values['skipped']), 'update')} skipped")
        if "gpu_gb" in values:
            facts.append(f"GPU memory {values['gpu_gb']:.1f} GB")
        return facts

    def validation(self, values: Mapping[str, float], step: int, best_step: int) -> list[str]:
        """Return the measures on the development set that the task has.

        Args:
            values: measures by name.
            step: of the validation.
            best_step: step of the best validation so far.
        """
        facts = self._averages(values)
        if not self._sparse:
            facts.append(f"perplexity {perplexity(values['loss']):.2f}")
        facts += [measure(n, values[n]) for n in ("exact_match", "bleu") if n in values]
        if self._config.selection == "macro_accuracy":
            facts.append(measure("macro_accuracy", values["macro_accuracy"]))
        return [*facts, "best so far" if best_step == step else f"best was step {best_step}"]

    def left(self, at: Standing) -> list[str]:
        """Return the time left, at the speed since this process began, validations included."""
        if self._since is None:
            return []
        began, before = self._since
        seconds = min(
            (
                (time.monotonic() - began) * (1 - share) / (share - was)
                for share, was in zip(self._shares(at), before, strict=True)
                if share > was
            ),
            default=None,
        )
        return [] if seconds is None else [f"{duration(seconds):>7} left"]

    def _averages(self, values: Mapping[str, float]) -> list[str]:
        facts = [
            f"loss {values['loss']:.4f}",
            f"token accuracy {values['token_accuracy']:5.1f} %",
        ]
        if self._sparse:
            facts.append(f"support {values['support']:6,.1f}")
        return facts


def measure(name: str, value: float) -> str:
    """Return a measure of a validation as people write it: `exact match 61.96 %`."""
    if name == "loss":
        return f"loss {value:.4f}"
    if name == "bleu":
        return f"BLEU {value:.2f}"
    return f"{name.replace('_', ' ')} {value:.2f} %"


def perplexity(loss: float) -> float:
    """Return the perplexity of a mean loss per token under softmax."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def duration(seconds: float) -> str:
    """Return a time as `3:05` minutes, `2:03:05` hours or `3 d 4 h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
