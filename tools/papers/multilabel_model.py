"""Linear multi-label models, whose features may be standardised."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

CONSTANT = 1e-12  # largest deviation of a constant feature relative to its mean: rounding


class Moments(NamedTuple):
    """Mean and deviation of each feature of a training set, which standardise features.

    Attributes:
        mean: `(features,)`, over rows in which the feature is present.
        deviation: `(features,)`; 1 for a constant feature.
    """

    mean: np.ndarray
    deviation: np.ndarray

    def standardise(self, features: Any) -> Tensor:
        """Return features with mean 0 and variance 1; missing ones become the mean."""
        standardised = (features - self.mean) / self.deviation
        return torch.from_numpy(np.nan_to_num(standardised, copy=False, nan=0.0))


class Linear(NamedTuple):
    """A fitted model.

    Attributes:
        weights: `(features, labels)`.
        bias: `(labels,)`.
        moments: moments of the training set; None if features are not standardised.
    """

    weights: Tensor
    bias: Tensor
    moments: Moments | None

    def scores(self, features: Any) -> Tensor:
        """Return the scores `(rows, labels)` of rows."""
        if self.moments is None:
            return torch.from_numpy(features @ self.weights.numpy()) + self.bias
        return self.moments.standardise(features) @ self.weights + self.bias


def moments_of(features: np.ndarray) -> Moments:
    """Return the moments of features, some of which may be missing, as NaN."""
    present = ~np.isnan(features)
    count = np.maximum(present.sum(0), 1)
    mean = np.where(present, features, 0).sum(0) / count
    deviation = np.sqrt((np.where(present, features - mean, 0) ** 2).sum(0) / count)
    constant = deviation <= CONSTANT * np.abs(mean)
    return Moments(mean, np.where(constant, 1.0, deviation))


def sparse_tensor(matrix: Any) -> Tensor:
    """Return a scipy matrix as a sparse tensor."""
    entries = matrix.tocoo()
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([entries.row, entries.col])),
        torch.from_numpy(entries.data),
        entries.shape,
        check_invariants=True,
    ).coalesce()
