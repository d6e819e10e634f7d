"""Linear multi-label models: losses, the grid of cross-validation, and fitting by L-BFGS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.config import Checked, option
from onmt_entmax.rules import FLAG, SHARE, number, whole
from onmt_entmax.sparse import entmax, entmax_loss
from tools.papers.multilabel_data import Examples

TOLERANCE = 3e-4  # of L-BFGS: largest entry of the gradient
ITERATIONS = 100

# --- losses ----------------------------------------------------------------------------------


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
        return self.probabilities(scores, setting) > (0 if self.sparse else setting)


_SCALE = number(0, 10**6)


@dataclass(frozen=True)
class Grid(Checked):
    """What cross-validation chooses from.

    Attributes:
        l2: values of lambda. These are in the authors' run_lbfgs_sparsemax_dataset.sh; another of
            their scripts, run_lbfgs_dataset.sh, has 1e-9 to 1.
        logistic_thresholds: of logistic probabilities.
        softmax_thresholds: of softmax probabilities, in multiples of 1 / number of labels.
        scales: for losses with sparse probabilities.
        folds: number of folds.
        standardise: shift and scale features to mean 0 and variance 1 on the training rows;
            missing values become the mean. If not, features stay as they are, and sparse.
    """

    l2: Sequence[float] = option((1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0), _SCALE)
    logistic_thresholds: Sequence[float] = option(
        tuple(round(0.05 * n, 2) for n in range(1, 11)), SHARE
    )
    softmax_thresholds: Sequence[float] = option(tuple(map(float, range(1, 11))), _SCALE)
    scales: Sequence[float] = option(tuple(0.5 * n for n in range(2, 11)), _SCALE)
    folds: int = option(5, whole(2, 1000))
    standardise: bool = option(True, FLAG)

    def settings(self, loss: Loss, labels: int) -> Sequence[float]:
        """Return the settings of a loss for a number of labels; see `Loss.predict`."""
        if loss.sparse:
            return self.scales
        if loss.alpha is None:
            return self.logistic_thresholds
        return [multiple / labels for multiple in self.softmax_thresholds]


# --- fitting ---------------------------------------------------------------------------------


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
    constant = deviation <= 1e-12 * np.abs(average)
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


class TrainingSet:
    """A training set in coordinates in which L-BFGS needs few steps.

    With the singular value decomposition :math:`X = U S V^T`, the scores are
    :math:`(U S D) P + b` for weights :math:`V D P`. The scales :math:`D` make the curvature
    about 1 in each direction, whatever lambda is. Sparse features keep their own axes, V = 1.
    """

    def __init__(self, examples: Examples, standardise: bool) -> None:
        self.labels = examples.labels.double()
        self.moments, self.directions, features = None, None, examples.features
        if standardise:
            self.moments = moments_of(features)
            table = standardised(features, *self.moments)
            left, singular, self.directions = torch.linalg.svd(table, full_matrices=False)
            self.axes = left * singular
            self.curvature = singular**2 / len(table)
        elif isinstance(features, np.ndarray):
            self.axes = torch.from_numpy(features)
            self.curvature = torch.from_numpy((features**2).mean(0))
        else:
            self.axes = sparse_tensor(features)
            squares = features.multiply(features)
            self.curvature = torch.from_numpy(np.asarray(squares.mean(0)).ravel())

    def model(self, parameters: Tensor, bias: Tensor, l2: float) -> Linear:
        """Return the model of parameters `(directions, labels)`."""
        weights = (self.curvature + l2).rsqrt()[:, None] * parameters.detach()
        if self.directions is not None:
            weights = self.directions.T @ weights
        return Linear(weights, bias.detach().clone(), self.moments)


def fit(
    training: Sequence[Examples], loss: Loss, l2: Sequence[float], standardise: bool
) -> Iterator[tuple[float, list[Linear]]]:
    """Yield, for each lambda from the largest to the smallest, a model for each training set.

    Each lambda starts from the parameters of the one before. The sets are separate problems, solved
    side by side, since a step then costs one round of small operations instead of several.

    Args:
        training: all rows have labels.
        loss: what to minimise.
        l2: values of lambda.
        standardise: see `Grid`.
    """
    sets = [TrainingSet(examples, standardise) for examples in training]
    labels = torch.cat([training_set.labels for training_set in sets])
    counts = [len(training_set.labels) for training_set in sets]
    shares = torch.cat([labels.new_full((count,), 1 / count) for count in counts])
    classes = labels.shape[1]
    matrices = [
        labels.new_zeros(len(training_set.curvature), classes, requires_grad=True)
        for training_set in sets
    ]
    biases = [labels.new_zeros(classes, requires_grad=True) for _ in sets]
    before: list[Tensor] = []
    for value in sorted(l2, reverse=True):
        scales = [(training_set.curvature + value).rsqrt() for training_set in sets]
        with torch.no_grad():  # the same weights in the new coordinates
            for matrix, old, new in zip(matrices, before or scales, scales, strict=True):
                matrix *= (old / new)[:, None]
        before = scales
        axes = [
            training_set.axes if training_set.axes.is_sparse else training_set.axes * scale
            for training_set, scale in zip(sets, scales, strict=True)
        ]
        _minimise(loss, value, axes, scales, matrices, biases, labels, shares)
        yield (
            value,
            [
                training_set.model(matrix, bias, value)
                for training_set, matrix, bias in zip(sets, matrices, biases, strict=True)
            ],
        )


def _minimise(
    loss: Loss,
    l2: float,
    axes: Sequence[Tensor],
    scales: Sequence[Tensor],
    matrices: Sequence[Tensor],
    biases: Sequence[Tensor],
    labels: Tensor,
    shares: Tensor,
) -> None:
    """Minimise the sum of the regularised risks of the training sets, in place.

    Args:
        loss: what to minimise.
        l2: lambda.
        axes: of each set, `(rows, directions)`; dense ones are scaled already.
        scales: of each set, `(directions,)`.
        matrices: of each set, `(directions, labels)`, changed.
        biases: of each set, `(labels,)`, changed.
        labels: of all rows, `(rows, labels)`.
        shares: of each row in the mean of its set, `(rows,)`.
    """
    optimiser = torch.optim.LBFGS(
        [*matrices, *biases],
        max_iter=ITERATIONS,
        tolerance_grad=TOLERANCE,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        """Compute the risk and its gradients; L-BFGS calls it several times a step."""
        optimiser.zero_grad()
        weights = [scale[:, None] * matrix for scale, matrix in zip(scales, matrices, strict=True)]
        scores = [
            axis @ (weight if axis.is_sparse else matrix) + bias
            for axis, weight, matrix, bias in zip(axes, weights, matrices, biases, strict=True)
        ]
        penalty = torch.stack([weight.square().sum() for weight in weights]).sum()
        risk = loss.of(torch.cat(scores), labels) @ shares + l2 / 2 * penalty
        risk.backward()
        return risk

    optimiser.step(closure)
