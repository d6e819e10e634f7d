"""Losses of several labels a row, how their scores become labels, and what can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.config import Checked, option
from onmt_entmax.rules import FLAG, SHARE, number, whole
from onmt_entmax.sparse import entmax, entmax_loss


class Loss(NamedTuple):
    """A loss with its probabilities and its way to predict labels.

    Attributes:
        name: for messages and tables.
        alpha: of the entmax loss; None is a logistic loss for each label.
    """

    name: str
    alpha: float | None

    @property
    def sparse(self) -> bool:
        """Whether probabilities can be exactly 0, so that the support is the prediction."""
        return self.alpha is not None and self.alpha > 1

    def of(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Return the losses `(rows,)` of scores `(rows, labels)`.

        Args:
            scores: floating point.
            labels: 0 or 1, in the type of the scores; each row has a 1 unless the loss is logistic.
        """
        if self.alpha is None:
            losses = functional.binary_cross_entropy_with_logits(scores, labels, reduction="none")
            return losses.sum(1)
        target = labels / labels.sum(1, keepdim=True)
        return entmax_loss(scores, target, self.alpha, reduction="none")

    def probabilities(self, scores: Tensor, setting: float) -> Tensor:
        """Return the probabilities of labels `(rows, labels)`; see `predict`."""
        if self.alpha is None:
            return torch.sigmoid(scores)
        return entmax(setting * scores if self.sparse else scores, self.alpha)

    def predict(self, scores: Tensor, setting: float) -> Tensor:
        """Return predicted labels, bool `(rows, labels)`.

        Args:
            scores: `(rows, labels)`.
            setting: of a sparse loss, the scale of the scores, whose support is predicted; of the
                others, the threshold that a probability must exceed.
        """
        threshold = 0 if self.sparse else setting
        return self.probabilities(scores, setting) > threshold


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
        """Return the settings of a loss for a number of labels; see `Loss.predict`."""
        if loss.sparse:
            return self.scales
        if loss.alpha is None:
            return self.logistic_thresholds
        return [multiple / labels for multiple in self.softmax_thresholds]
