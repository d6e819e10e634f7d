"""The values from which cross-validation of multi-label classifiers chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onmt_entmax.config import Checked, option
from onmt_entmax.rules import FLAG, SHARE, number, whole
from tools.papers.multilabel_loss import Loss

_SCALE = number(0, 10**6)


@dataclass(frozen=True)
class Grid(Checked):
    """The values that cross-validation chooses from.

    The values of lambda are those of the authors' run_lbfgs_sparsemax_dataset.sh; another of their
    scripts, run_lbfgs_dataset.sh, has 1e-9 to 1.
    """

    l2: Sequence[float] = option(
        (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0), _SCALE, "factors lambda of the L2 penalty"
    )
    logistic_thresholds: Sequence[float] = option(
        tuple(round(0.05 * n, 2) for n in range(1, 11)), SHARE, "of logistic probabilities"
    )
    softmax_thresholds: Sequence[float] = option(
        tuple(map(float, range(1, 11))), _SCALE, "in multiples of 1 / number of labels"
    )
    scales: Sequence[float] = option(
        tuple(0.5 * n for n in range(2, 11)), _SCALE, "of the scores, for sparse losses"
    )
    folds: int = option(5, whole(2, 1000), "number of folds")
    standardise: bool = option(
        True, FLAG, "give features mean 0 and variance 1, missing ones 0; else they stay sparse"
    )

    def settings(self, loss: Loss, labels: int) -> Sequence[float]:
        """Return the settings to try for a loss and a number of labels; see `Loss`."""
        if loss.is_sparse:
            return self.scales
        if loss.alpha is None:
            return self.logistic_thresholds
        return [multiple / labels for multiple in self.softmax_thresholds]
