"""What people see of a run on stderr: a bar on a terminal, and lines."""

import sys
import time
from collections.abc import Mapping, Sequence

from tqdm import tqdm

from onmt_entmax.config import TrainingConfig
from onmt_entmax.train.progress import Progress, TimeLeft, shares_of_limits
from onmt_entmax.train.progress_texts import (
    left_text,
    place_text,
    training_texts,
    validation_texts,
)


class ProgressLines:
    """Print a run as it goes on.

    Args:
        config: limits of the run, and the measure of the best checkpoint.
        alpha: of the output. Softmax has a perplexity; above 1 it may be infinite, and the support
            is of interest.
    """

    def __init__(self, config: TrainingConfig, alpha: float) -> None:
        self._config = config
        self._is_sparse = alpha > 1
        self._left = TimeLeft(config)
        # In a log file, the bar would leave thousands of carriage returns.
        self._bar = tqdm(
            total=1,
            bar_format="{percentage:3.0f}%|{bar:8}| {desc}",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )
        self._averages: list[str] = []  # the last ones of training, for the bar

    def advance(self, at: Progress) -> None:
        """Show one more update."""
        self._left.advance(at)
        if not self._bar.disable:
            texts = [*self._position(at, place_text(self._config, at)), *self._averages]
            # A bar is not aligned with anything, and has little room.
            text = ", ".join(" ".join(text.split()) for text in texts)
            self._bar.set_description_str(text, refresh=False)
            share = max(shares_of_limits(self._config, at).values(), default=0.0)
            self._bar.update(share - self._bar.n)

    def training(self, at: Progress, values: Mapping[str, float]) -> None:
        """Show averages over updates: a line, or from now on in the bar.

        Args:
            at: position of the run.
            values: the averages that `Log.training` writes.
        """
        self._averages = training_texts(values, self._is_sparse)
        if self._bar.disable:
            self._print([*self._position(at, place_text(self._config, at)), *self._averages])

    def validation(self, at: Progress, values: Mapping[str, float], best_step: int) -> None:
        """Print measures on the development set; see `Log.validation`."""
        measures = validation_texts(values, self._is_sparse, self._config.selection)
        best = "best so far" if best_step == at.step else f"best was step {best_step}"
        place = place_text(self._config, at, is_validation=True)
        self._print([*self._position(at, place), *measures, best])

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()

    def _position(self, at: Progress, place: str) -> list[str]:
        """Return the place of a run and, as soon as it is known, the time that is left."""
        seconds = self._left.seconds(at)
        return [place] if seconds is None else [place, left_text(seconds)]

    def _print(self, texts: Sequence[str]) -> None:
        """Print a line without breaking the bar."""
        tqdm.write("  ".join([time.strftime("%H:%M:%S"), *texts]), file=sys.stderr)
        sys.stderr.flush()
