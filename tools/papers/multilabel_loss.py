"""Losses of rows with several labels, and how their scores become labels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.sparse import entmax, entmax_loss


class Loss(NamedTuple):
    """A loss with its probabilities and its predictions.

    Predictions depend on a setting that cross-validation chooses: for a sparse loss, the scale of
    the scores, whose support is predicted; for others, the threshold that the probability of a
    predicted label exceeds.

    Attributes:
        name: name for messages and tables.
        alpha: alpha of the entmax loss; None: a logistic loss for each label.
    """

    name: str
    alpha: float | None

    @property
    def is_sparse(self) -> bool:
        """Whether probabilities can be exactly 0, so that the support is the prediction."""
        return self.alpha is not None and self.alpha > 1

    def losses(self, scores: Tensor, labels: Tensor) -> Tensor:
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
        return entmax(setting * scores if self.is_sparse else scores, self.alpha)

    def predict(self, scores: Tensor, setting: float) -> Tensor:
        """Return predicted labels, bool `(rows, labels)`.

        Args:
            scores: `(rows, labels)`.
            setting: a scale or a threshold.
        """
        threshold = 0 if self.is_sparse else setting
        return self.probabilities(scores, setting) > threshold
