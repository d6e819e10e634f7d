"""Linear multi-label models, whose features may be standardised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# A feature whose deviation is at most this part of its mean is constant: the rest is rounding.
CONSTANT_DEVIATION = 1e-12


class Moments(NamedTuple):
    """Mean and standard deviation of each feature of a training set.

    Attributes:
        mean: `(features,)`, over rows in which the feature is present.
        deviation: `(features,)`; 1 for a constant feature.
    """

    mean: np.ndarray
    deviation: np.ndarray

    def standardise(self, features: np.ndarray) -> Tensor:
        """Return features minus the means, divided by the deviations; 0 for missing values.

        Args:
            features: `(rows, features)`, of the training set or of other rows; nan is a missing
                value.
        """
        standardised = (features - self.mean) / self.deviation
        return torch.from_numpy(np.nan_to_num(standardised, copy=False, nan=0.0))


class LinearModel(NamedTuple):
    """A fitted model: scores are linear in the features.

    Attributes:
        weights: `(features, labels)`.
        bias: `(labels,)`.
        moments: moments of the training set; None if features are not standardised.
    """

    weights: Tensor
    bias: Tensor
    moments: Moments | None

    def scores(self, features: np.ndarray | csr_matrix) -> Tensor:
        """Return the scores `(rows, labels)` of rows.

        Args:
            features: `(rows, features)`, not standardised; must be an array if the model has
                moments.
        """
        if self.moments is None:
            return torch.from_numpy(features @ self.weights.numpy()) + self.bias
        return self.moments.standardise(features) @ self.weights + self.bias


def moments_of(features: np.ndarray) -> Moments:
    """Return the moments of features `(rows, features)`; nan is a missing value."""
    present = ~np.isnan(features)
    count = np.maximum(present.sum(0), 1)
    mean = np.where(present, features, 0).sum(0) / count
    deviation = np.sqrt((np.where(present, features - mean, 0) ** 2).sum(0) / count)
    constant = deviation <= CONSTANT_DEVIATION * np.abs(mean)
    return Moments(mean, np.where(constant, 1.0, deviation))


def sparse_tensor(matrix: csr_matrix) -> Tensor:
    """Return a sparse matrix of SciPy as a sparse tensor of PyTorch."""
    entries = matrix.tocoo()
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([entries.row, entries.col])),
        torch.from_numpy(entries.data),
        entries.shape,
        check_invariants=True,
    ).coalesce()
