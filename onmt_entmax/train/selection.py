"""The best checkpoint of a run, and how long validations have not been better."""

import math

from onmt_entmax.train.saved_state import SavedSelection


class Selection:
    """The best model so far, by one measure of the validations.

    Early stopping counts planned validations alone, which an uninterrupted run has too; the extra
    one at the end of a run may still find the best model.

    Args:
        measure: option `selection`: `loss`, or a measure that is better if it is larger.

    Attributes:
        best: best value of the measure; None before the first validation.
        best_step: updates of the best model; -1 before the first validation.
        best_planned: best value in planned validations.
        waited: planned validations since `best_planned`.
    """

    def __init__(self, measure: str) -> None:
        self.measure = measure
        self.best: float | None = None
        self.best_step = -1
        self.best_planned: float | None = None
        self.waited = 0

    def judge(self, value: float, step: int, planned: bool) -> bool:
        """Return whether a validated model is the best so far, and take note of it.

        Args:
            value: the value of the measure.
            step: updates of the model.
            planned: whether the validation counts for early stopping.
        """
        # Among models without one right output, the newest has learned most.
        still_nothing_right = self.measure != "loss" and value == 0 and self.best == 0
        is_best = still_nothing_right or self._is_better(value, self.best)
        if is_best:
            self.best = value
            self.best_step = step
        if planned and self._is_better(value, self.best_planned):
            self.best_planned = value
            self.waited = 0
        elif planned:
            self.waited += 1
        return is_best

    def _is_better(self, value: float, best: float | None) -> bool:
        """Return whether a value is better than the best; one that is not finite is worst."""
        if best is None:
            return True
        sign = -1 if self.measure == "loss" else 1
        if sign * value > sign * best:
            return True
        return not math.isfinite(best) and math.isfinite(value)

    def state_dict(self) -> SavedSelection:
        """Return what a checkpoint saves."""
        return {
            "best": self.best,
            "best_step": self.best_step,
            "best_planned": self.best_planned,
            "waited": self.waited,
        }

    def load_state_dict(self, saved: SavedSelection) -> None:
        """Restore what `state_dict` returned."""
        self.best = saved["best"]
        self.best_step = saved["best_step"]
        self.best_planned = saved["best_planned"]
        self.waited = saved["waited"]


def forget_best(saved: SavedSelection) -> None:
    """Change a saved selection, so that no checkpoint is the best.

    Early stopping goes on, since it compares values, not checkpoints.
    """
    saved["best"] = None
    saved["best_step"] = -1


def forget_validations(saved: SavedSelection) -> None:
    """Change a saved selection to that of a run before its first validation."""
    forget_best(saved)
    saved["best_planned"] = None
    saved["waited"] = 0
