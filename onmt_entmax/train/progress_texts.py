"""The parts of a line about a run, as people read them.

Numbers have fixed widths, so that lines are aligned.
"""

import math
from collections.abc import Mapping

from onmt_entmax.config import TrainingConfig
from onmt_entmax.errors import counted
from onmt_entmax.train.measures import measure_text
from onmt_entmax.train.progress import Progress

_VALIDATION = "validation"
_STEP_DIGITS = 6  # width of a step in a run whose last step is unknown
_LARGEST_LOSS = 700  # the perplexity of a larger one would overflow
_HOURS_SHOWN_AS_DAYS = 48  # times of so many hours, or more


def place_text(config: TrainingConfig, at: Progress, is_validation: bool = False) -> str:
    """Return the epoch, counted from 1, and the step: `epoch 3     step  500/4000`.

    Args:
        config: limits of the run.
        at: position of the run.
        is_validation: whether `validation` stands in the place of the epoch.
    """
    last_epoch, last_step = config.train_epochs, config.train_steps
    epoch = _VALIDATION if is_validation else _epoch_text(math.ceil(at.epochs), last_epoch)
    longest_epoch = _epoch_text(last_epoch, last_epoch) if last_epoch else ""
    width = max(len(_VALIDATION), len(longest_epoch))
    digits = len(str(last_step)) if last_step else _STEP_DIGITS
    all_steps = f"/{last_step}" if last_step else ""
    return f"{epoch:{width}}  step {at.step:{digits}}{all_steps}"


def _epoch_text(epoch: int, last: int | None) -> str:
    """Return `epoch 3/20`, or `epoch 3` if the last one is unknown."""
    return f"epoch {epoch}/{last}" if last else f"epoch {epoch}"


def left_text(seconds: float) -> str:
    """Return the time that is left: `   3:05 left`."""
    return f"{_duration(seconds):>7} left"


def _duration(seconds: float) -> str:
    """Return a time as `3:05` minutes, `2:03:05` hours or `3 d 4 h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= _HOURS_SHOWN_AS_DAYS:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def training_texts(values: Mapping[str, float], is_sparse: bool) -> list[str]:
    """Return averages over updates, a text each.

    Args:
        values: the averages that `Log.training` writes.
        is_sparse: whether the output has an alpha above 1.
    """
    texts = [
        *_averages(values, is_sparse),
        f"lr {values['learning_rate']:<8.3g}",
        f"{values['tokens_per_second']:7,.0f} tokens/s",
    ]
    if "skipped" in values:
        texts.append(f"{counted(int(values['skipped']), 'update')} skipped")
    if "gpu_gb" in values:
        texts.append(f"GPU memory {values['gpu_gb']:.1f} GB")
    return texts


def validation_texts(values: Mapping[str, float], is_sparse: bool, selection: str) -> list[str]:
    """Return measures on the development set, a text each.

    Args:
        values: the measures by name, see `Log.validation`.
        is_sparse: whether the output has an alpha above 1.
        selection: the measure of the best checkpoint.
    """
    texts = _averages(values, is_sparse)
    if not is_sparse:
        loss = values["loss"]
        perplexity = math.exp(loss) if loss < _LARGEST_LOSS else math.inf
        texts.append(f"perplexity {perplexity:.2f}")
    for name in ("exact_match", "bleu"):
        if name in values:
            texts.append(measure_text(name, values[name]))
    if selection == "macro_accuracy":
        texts.append(measure_text("macro_accuracy", values["macro_accuracy"]))
    if "output_factor" in values:
        texts.append(f"output times {values['output_factor']:.2f}")
    return texts


def _averages(values: Mapping[str, float], is_sparse: bool) -> list[str]:
    """Return averages over target tokens, a text each."""
    texts = [
        f"loss {values['loss']:.4f}",
        f"token accuracy {values['token_accuracy']:5.1f} %",
    ]
    if is_sparse:
        texts.append(f"support {values['support']:6,.1f}")
    return texts
