"""Linear multi-label models: fitting by L-BFGS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tools.papers.multilabel_data import Examples
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_model import Linear, Moments, moments_of, sparse_tensor

# L-BFGS ends when the first of these limits is reached.
TOLERANCE = 3e-4  # the largest absolute entry of the gradient is not above it
SMALLEST_CHANGE = 1e-10  # the risk changes by less than this in a step
ITERATIONS = 100  # steps


class TrainingSet:
    r"""A training set in coordinates in which L-BFGS needs few steps.

    Features that differ in size, or go together, make a risk whose curvature differs much between
    directions, so that L-BFGS takes many steps. The singular value decomposition
    :math:`X = U S V^T` of the features turns them into directions that do not go together. With
    scales :math:`D`, a diagonal matrix, and parameters :math:`P`,

    .. math:: W = V D P, \qquad X W + b = (U S D) P + b.

    The curvature of the mean loss in direction i is about :math:`s_i^2 / n`, and that of the
    penalty :math:`\lambda`, so :math:`d_i = (s_i^2 / n + \lambda)^{-1/2}` makes it about 1 in each
    direction of :math:`P`. Features that are not standardised keep their own axes, V = 1.

    Args:
        examples: all rows have labels.
        standardise: see `Grid`.

    Attributes:
        labels: `(rows, labels)`, 0 or 1.
        axes: U S, `(rows, directions)`.
        curvature: :math:`s_i^2 / n`, `(directions,)`.
        directions: V transposed, `(directions, features)`; None for the identity.
        moments: see `Linear`.
    """

    def __init__(self, examples: Examples, standardise: bool) -> None:
        self.labels = examples.labels.double()
        self.moments: Moments | None = None
        self.directions: Tensor | None = None
        features = examples.features
        if standardise:
            self.moments = moments_of(features)
            table = self.moments.standardise(features)
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

    def model(self, weights: Tensor, bias: Tensor) -> Linear:
        """Return the model of weights `(directions, labels)`, D P above."""
        if self.directions is not None:
            weights = self.directions.T @ weights
        return Linear(weights, bias, self.moments)


class _Problem:
    """A training set, with the parameters that L-BFGS changes, from zero.

    `matrix` stands for the weights divided by scales that depend on lambda. The scales are 1 until
    `set_l2` is called, which must come before the minimisation for a lambda.

    Attributes:
        training_set: the training set.
        matrix: P above, `(directions, labels)`.
        bias: `(labels,)`.
    """

    def __init__(self, training_set: TrainingSet) -> None:
        self.training_set = training_set
        labels = training_set.labels
        classes = labels.shape[1]
        directions = len(training_set.curvature)
        self.matrix = labels.new_zeros(directions, classes, requires_grad=True)
        self.bias = labels.new_zeros(classes, requires_grad=True)
        self._scales = torch.ones_like(training_set.curvature)

    def set_l2(self, l2: float) -> None:
        """Take the scales for a lambda, D above; the matrix changes so that the weights do not."""
        scales = (self.training_set.curvature + l2).rsqrt()
        with torch.no_grad():
            self.matrix *= (self._scales / scales)[:, None]
        self._scales = scales

    def weights(self) -> Tensor:
        """Return the weights `(directions, labels)`, D P above."""
        return self._scales[:, None] * self.matrix

    def scores(self, weights: Tensor) -> Tensor:
        """Return the scores `(rows, labels)` of what `weights` returns, which is computed once."""
        return self.training_set.axes @ weights + self.bias

    def model(self) -> Linear:
        """Return the model."""
        return self.training_set.model(self.weights().detach(), self.bias.detach().clone())


class Fitted(NamedTuple):
    """Models that were fitted with one lambda.

    Attributes:
        l2: lambda.
        models: a model for each training set.
    """

    l2: float
    models: list[Linear]


def fit(
    training: Sequence[Examples],
    loss: Loss,
    l2: Sequence[float],
    standardise: bool,
    *,
    tolerance: float = TOLERANCE,
) -> Iterator[Fitted]:
    """Yield, for each lambda from the largest to the smallest, a model for each training set.

    Each lambda starts from the parameters of the one before. The training sets are separate
    problems. They are solved together, since a step then takes one round of small operations
    instead of several.

    Args:
        training: all rows have labels.
        loss: what to minimise.
        l2: values of lambda.
        standardise: see `Grid`.
        tolerance: largest absolute entry of the gradient at which L-BFGS may end.
    """
    problems = [_Problem(TrainingSet(examples, standardise)) for examples in training]
    for value in sorted(l2, reverse=True):
        for problem in problems:
            problem.set_l2(value)
        _minimise(loss, value, problems, tolerance)
        yield Fitted(value, [problem.model() for problem in problems])


def _minimise(loss: Loss, l2: float, problems: Sequence[_Problem], tolerance: float) -> None:
    """Minimise the sum of the regularised risks of several problems, in place.

    Args:
        loss: what to minimise.
        l2: lambda.
        problems: the training sets, whose parameters are changed.
        tolerance: see `fit`.
    """
    optimiser = torch.optim.LBFGS(
        [*(problem.matrix for problem in problems), *(problem.bias for problem in problems)],
        max_iter=ITERATIONS,
        tolerance_grad=tolerance,
        tolerance_change=SMALLEST_CHANGE,
        line_search_fn="strong_wolfe",
    )
    labels = torch.cat([problem.training_set.labels for problem in problems])
    counts = [len(problem.training_set.labels) for problem in problems]
    # Of each row in the mean of its set.
    shares = torch.cat([labels.new_full((count,), 1 / count) for count in counts])

    def closure() -> Tensor:
        """Compute the risk and its gradients; L-BFGS calls it several times a step."""
        optimiser.zero_grad()
        weights = [problem.weights() for problem in problems]
        pairs = zip(problems, weights, strict=True)
        scores = [problem.scores(own_weights) for problem, own_weights in pairs]
        penalty = torch.stack([own_weights.square().sum() for own_weights in weights]).sum()
        risk = loss.losses(torch.cat(scores), labels) @ shares + l2 / 2 * penalty
        risk.backward()
        return risk

    optimiser.step(closure)
