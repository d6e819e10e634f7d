r"""Linear multi-label classifiers with logistic, softmax, sparsemax and other entmax losses.

After Martins and Astudillo (2016, section 4.2): scores :math:`z = W x + b`, the loss of scores
against the uniform distribution over a row's labels (for the logistic loss, against each label),
averaged over rows, plus :math:`\frac{\lambda}{2} \lVert W \rVert^2`. Cross-validation chooses
:math:`\lambda` and how scores become labels. The penalty, free of the bias, the grids, the
most steps of L-BFGS and the macro F1 are those of the authors' code (Unbabel/sparsemax on GitHub,
train_multilabel_classifier_lbfgs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.classify.multilabel_data import Examples, dense, issparse
from onmt_entmax.errors import UserError
from onmt_entmax.sparse import entmax, entmax_loss

_TOLERANCE = 3e-4  # of L-BFGS: largest entry of the gradient
_ITERATIONS = 100
_ENOUGH_SPREAD = 1e-12  # standard deviation of a feature, relative to its size; less is constant
CHOOSERS = ("micro_f1", "macro_f1")  # each takes its own best lambda and setting


class ClassificationError(UserError):
    """Data or settings with which no classifier can be fitted."""


@dataclass(frozen=True)
class Loss:
    """A loss with its probabilities and its way to predict labels.

    Attributes:
        name: for messages and tables.
        alpha: of the entmax loss; None is a logistic loss for each label.
    """

    name: str
    alpha: float | None

    def of(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Return the losses `(rows,)` of scores `(rows, labels)`.

        Args:
            scores: floating point.
            labels: 0 or 1, in the type of the scores; each row has a 1 unless the loss is logistic.
        """
        if self.alpha is None:
            return functional.binary_cross_entropy_with_logits(
                scores, labels, reduction="none"
            ).sum(1)
        target = labels / labels.sum(1, keepdim=True)
        return entmax_loss(scores, target, self.alpha, reduction="none")

    def probabilities(self, scores: Tensor, scale: float = 1.0) -> Tensor:
        """Return the probabilities of labels; only logistic ones do not sum to 1.

        Args:
            scores: `(rows, labels)`.
            scale: factor of the scores.
        """
        if self.alpha is None:
            return torch.sigmoid(scale * scores)
        return entmax(scale * scores, self.alpha)

    @property
    def sparse(self) -> bool:
        """Whether probabilities can be exactly 0, so that the support is the prediction."""
        return self.alpha is not None and self.alpha > 1

    def predict(self, scores: Tensor, setting: float) -> Tensor:
        """Return predicted labels, bool `(rows, labels)`.

        Args:
            scores: `(rows, labels)`.
            setting: of a sparse loss, the scale of the scores, whose support is predicted; of the
                others, the threshold that a probability must exceed.
        """
        if self.sparse:
            return self.probabilities(scores, setting) > 0
        return self.probabilities(scores) > setting


@dataclass(frozen=True)
class Grid:
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

    l2: tuple[float, ...] = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
    logistic_thresholds: tuple[float, ...] = tuple(round(0.05 * n, 2) for n in range(1, 11))
    softmax_thresholds: tuple[float, ...] = tuple(map(float, range(1, 11)))
    scales: tuple[float, ...] = tuple(0.5 * n for n in range(2, 11))
    folds: int = 5
    standardise: bool = True

    def settings(self, loss: Loss, labels: int) -> tuple[float, ...]:
        """Return the settings of a loss for a number of labels; see `Loss.predict`."""
        if loss.sparse:
            return self.scales
        if loss.alpha is None:
            return self.logistic_thresholds
        return tuple(multiple / labels for multiple in self.softmax_thresholds)


@dataclass(frozen=True)
class Choice:
    """What cross-validation chose, and the F1 in % that it had on held-out rows."""

    l2: float
    setting: float
    f1: float


# --- fitting ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """A fitted model, with its standardisation.

    Attributes:
        weights: `(features, labels)`.
        bias: `(labels,)`.
        mean, deviation: of the features `(features,)`; None if they are not standardised.
    """

    weights: Tensor
    bias: Tensor
    mean: np.ndarray | None
    deviation: np.ndarray | None

    def scores(self, features: Any) -> Tensor:
        """Return the scores `(rows, labels)` of rows; see `Examples.features`."""
        if self.mean is None or self.deviation is None:
            return torch.from_numpy(features @ self.weights.numpy()) + self.bias
        return _standardised(features, self.mean, self.deviation) @ self.weights + self.bias


def _standardised(features: Any, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    standardised = (dense(features, "the data") - mean) / deviation
    return torch.from_numpy(np.nan_to_num(standardised, copy=False, nan=0.0))


class _TrainingSet:
    """A training set in coordinates in which L-BFGS needs few steps.

    With the singular value decomposition :math:`X = U S V^T`, the scores are
    :math:`(U S D) P + b` for weights :math:`V D P`. The scales :math:`D` make the curvature
    about 1 in each direction, whatever lambda is. Sparse features keep their own axes, V = 1.
    """

    def __init__(self, examples: Examples, standardise: bool) -> None:
        self.labels = examples.labels.double()
        self.mean: np.ndarray | None = None
        self.deviation: np.ndarray | None = None
        self.directions: Tensor | None = None
        features = examples.features
        if not standardise:
            self.axes = (
                _sparse_tensor(features) if issparse(features) else torch.from_numpy(features)
            )
            squares = features.multiply(features) if issparse(features) else features**2
            self.curvature = torch.from_numpy(np.asarray(squares.mean(0)).ravel())
            if self.curvature.isnan().any():
                raise ClassificationError("features have missing values: set `standardise: true`")
            return
        table = dense(features, "the data")
        there = ~np.isnan(table)
        count = np.maximum(there.sum(0), 1)
        self.mean = np.where(there, table, 0).sum(0) / count
        deviation = np.sqrt((np.where(there, table - self.mean, 0) ** 2).sum(0) / count)
        constant = deviation <= _ENOUGH_SPREAD * np.abs(self.mean)
        self.deviation = np.where(constant, 1.0, deviation)
        standardised = _standardised(table, self.mean, self.deviation)
        left, singular, self.directions = torch.linalg.svd(standardised, full_matrices=False)
        self.axes = left * singular
        self.curvature = singular**2 / len(table)

    def scales(self, l2: float) -> Tensor:
        """Return the diagonal of D, `(directions,)`."""
        return (self.curvature + l2).rsqrt()

    def model(self, parameters: Tensor, bias: Tensor, l2: float) -> Linear:
        """Return the model of parameters `(directions, labels)`."""
        weights = self.scales(l2)[:, None] * parameters.detach()
        if self.directions is not None:
            weights = self.directions.T @ weights
        return Linear(weights, bias.detach().clone(), self.mean, self.deviation)


def _sparse_tensor(features: Any) -> Tensor:
    parts = features.tocoo()
    places = torch.from_numpy(np.stack([parts.row, parts.col]).astype(np.int64))
    values = torch.from_numpy(parts.data)
    return torch.sparse_coo_tensor(places, values, parts.shape, check_invariants=True).coalesce()


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
    sets = [_TrainingSet(examples, standardise) for examples in training]
    labels = torch.cat([each.labels for each in sets])
    shares = torch.cat([s.labels.new_full((len(s.labels),), 1 / len(s.labels)) for s in sets])
    classes = labels.shape[1]
    matrices = [labels.new_zeros(len(s.curvature), classes, requires_grad=True) for s in sets]
    biases = [labels.new_zeros(classes, requires_grad=True) for _ in sets]
    before: list[Tensor] | None = None
    for value in sorted(l2, reverse=True):
        scales = [each.scales(value) for each in sets]
        with torch.no_grad():
            for matrix, old, new in zip(matrices, before or scales, scales, strict=True):
                matrix *= (old / new)[:, None]
        before = scales
        axes = [
            s.axes if s.axes.is_sparse else s.axes * scale
            for s, scale in zip(sets, scales, strict=True)
        ]
        _minimise(loss, value, axes, scales, matrices, biases, labels, shares)
        yield value, [s.model(m, b, value) for s, m, b in zip(sets, matrices, biases, strict=True)]


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
        loss: of a row.
        l2: lambda.
        axes: `(rows, directions)` of each set, scaled unless they are sparse.
        scales: `(directions,)` of each set.
        matrices: the parameters `(directions, labels)` of each set.
        biases: `(labels,)` of each set.
        labels: of the rows of all sets.
        shares: weight of each of these rows.
    """
    parameters = [*matrices, *biases]
    optimiser = torch.optim.LBFGS(
        parameters,
        max_iter=_ITERATIONS,
        tolerance_grad=_TOLERANCE,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        weights = [scale[:, None] * matrix for scale, matrix in zip(scales, matrices, strict=True)]
        scores = [
            axis @ (weight if axis.is_sparse else matrix) + bias
            for axis, weight, matrix, bias in zip(axes, weights, matrices, biases, strict=True)
        ]
        penalty = torch.stack([weight.square().sum() for weight in weights]).sum()
        value = loss.of(torch.cat(scores), labels) @ shares + l2 / 2 * penalty
        value.backward()
        return value

    optimiser.step(closure)


# --- choosing and evaluating -----------------------------------------------------------------


def f1(labels: Tensor, predicted: Tensor) -> dict[str, float]:
    """Return three averages of F1 over labels, in %.

    `micro_f1` counts all labels together. `macro_f1` is 2PR / (P + R) of the mean precision P and
    the mean recall R of the labels, as in the authors' code. `label_mean_f1` is the mean of the
    labels' F1, which scikit-learn calls macro. 0/0 is 0: the precision of a label that is never
    predicted, the recall of one that no row has. scikit-learn's functions agree, but take at
    least 25 times as long, and cross-validation calls this for each point of its grid.

    Args:
        labels: bool `(rows, labels)`.
        predicted: likewise.
    """
    hits = (labels & predicted).sum(0).double()
    there, chosen = labels.sum(0).double(), predicted.sum(0).double()
    precision = float((hits / chosen.clamp_min(1)).mean())
    recall = float((hits / there.clamp_min(1)).mean())
    total = there + chosen
    return {
        "micro_f1": 200 * float(hits.sum() / total.sum().clamp_min(1)),
        "macro_f1": 200 * precision * recall / ((precision + recall) or 1),
        "label_mean_f1": 200 * float((hits / total.clamp_min(1)).mean()),
    }


def split(rows: int, folds: int, seed: int) -> list[Tensor]:
    """Return a random partition of row indices into folds of almost equal size.

    Raises:
        ClassificationError: there are fewer rows than folds.
    """
    if rows < folds:
        raise ClassificationError(f"too few rows with labels for {folds} folds: {rows}")
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    return list(order.tensor_split(folds))


def without(rows: int, held_out: Tensor) -> Tensor:
    """Return the indices of all rows except for some."""
    kept = torch.ones(rows, dtype=torch.bool)
    kept[held_out] = False
    return kept.nonzero().squeeze(1)


def choose(examples: Examples, loss: Loss, grid: Grid, seed: int) -> dict[str, Choice]:
    """Return the best lambda and setting on held-out rows, by cross-validation.

    Of equally good ones, the largest lambda and the first setting.

    Args:
        examples: all rows have labels.
        loss: what to minimise.
        grid: what to choose from.
        seed: of the folds.

    Returns:
        A choice for each of `CHOOSERS`.
    """
    folds = split(len(examples), grid.folds, seed)
    training = [examples.take(without(len(examples), held_out)) for held_out in folds]
    labels = torch.cat([examples.labels[held_out] for held_out in folds])
    best: dict[str, Choice] = {}
    for l2, models in fit(training, loss, grid.l2, grid.standardise):
        held_out = [
            model.scores(examples.features[rows.numpy()])
            for model, rows in zip(models, folds, strict=True)
        ]
        scores = torch.cat(held_out)
        for setting in grid.settings(loss, len(examples.names)):
            measured = f1(labels, loss.predict(scores, setting))
            for chooser in CHOOSERS:
                if chooser not in best or measured[chooser] > best[chooser].f1:
                    best[chooser] = Choice(l2, setting, measured[chooser])
    return best


@dataclass(frozen=True)
class Outcome:
    """Predictions for rows that the model has not seen.

    Attributes:
        predicted: bool `(rows, labels)`.
        probabilities: `(rows, labels)`; of a sparse loss, at the chosen scale.
        choices: one for each model.
    """

    predicted: Tensor
    probabilities: Tensor
    choices: list[Choice]


def train_and_predict(
    training: Examples, features: Any, loss: Loss, grid: Grid, seed: int
) -> dict[str, Outcome]:
    """Choose by cross-validation, fit on all training rows, and predict other rows.

    Args:
        training: rows without labels are left out.
        features: of the rows to predict.
        loss: what to minimise.
        grid: what to choose from.
        seed: of the folds.

    Returns:
        An outcome for each of `CHOOSERS`.

    Raises:
        ClassificationError: there are too few rows with labels.
    """
    labelled = training.take(training.labelled())
    outcomes, scores_of = {}, {}
    for chooser, choice in choose(labelled, loss, grid, seed).items():
        if choice.l2 not in scores_of:
            _, (model,) = next(fit([labelled], loss, [choice.l2], grid.standardise))
            scores_of[choice.l2] = model.scores(features)
        scores = scores_of[choice.l2]
        outcomes[chooser] = Outcome(
            loss.predict(scores, choice.setting),
            loss.probabilities(scores, choice.setting if loss.sparse else 1.0),
            [choice],
        )
    return outcomes


def cross_validate(
    examples: Examples, loss: Loss, grid: Grid, seed: int, step: Callable[[], object]
) -> dict[str, Outcome]:
    """Predict each row by a model that was chosen and fitted without its fold.

    Args:
        examples: all rows; those without labels are predicted, but teach nothing.
        loss: what to minimise.
        grid: what to choose from, for each outer fold anew.
        seed: of the outer and of the inner folds.
        step: called after each outer fold.

    Returns:
        An outcome for each of `CHOOSERS`.

    Raises:
        ClassificationError: there are too few rows with labels.
    """
    size = (len(examples), len(examples.names))
    whole = {
        chooser: Outcome(torch.zeros(size, dtype=torch.bool), torch.zeros(size).double(), [])
        for chooser in CHOOSERS
    }
    for held_out in split(len(examples), grid.folds, seed):
        training = examples.take(without(len(examples), held_out))
        features = examples.features[held_out.numpy()]
        for chooser, part in train_and_predict(training, features, loss, grid, seed).items():
            whole[chooser].predicted[held_out] = part.predicted
            whole[chooser].probabilities[held_out] = part.probabilities
            whole[chooser].choices.extend(part.choices)
        step()
    return whole
