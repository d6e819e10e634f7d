"""Linear multi-label models, and their features: standardised, or as they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

CONSTANT = 1e-12  # largest deviation of a constant feature relative to its mean: rounding


class Linear(NamedTuple):
    """A fitted model.

    Attributes:
        weights: `(features, labels)`.
        bias: `(labels,)`.
        moments: mean and deviation of the features, if they are standardised.
    """

    weights: Tensor
    bias: Tensor
    moments: tuple[np.ndarray, np.ndarray] | None

    def scores(self, features: Any) -> Tensor:
        """Return the scores `(rows, labels)` of rows."""
        if self.moments is None:
            return torch.from_numpy(features @ self.weights.numpy()) + self.bias
        return standardised(features, *self.moments) @ self.weights + self.bias


def standardised(features: Any, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    """Return features with mean 0 and variance 1; missing ones become the mean."""
    return torch.from_numpy(np.nan_to_num((features - mean) / deviation, copy=False, nan=0.0))


def moments_of(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of features without missing values; 1 for constant features."""
    present = ~np.isnan(features)
    count = np.maximum(present.sum(0), 1)
    average = np.where(present, features, 0).sum(0) / count
    deviation = np.sqrt((np.where(present, features - average, 0) ** 2).sum(0) / count)
    constant = deviation <= CONSTANT * np.abs(average)
    return average, np.where(constant, 1.0, deviation)


def sparse_tensor(matrix: Any) -> Tensor:
    """Return a scipy matrix as a sparse tensor."""
    entries = matrix.tocoo()
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([entries.row, entries.col])),
        torch.from_numpy(entries.data),
        entries.shape,
        check_invariants=True,
    ).coalesce()
