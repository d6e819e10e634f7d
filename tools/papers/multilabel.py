r"""Linear multi-label classifiers with logistic, softmax, sparsemax and other entmax losses.

After Martins and Astudillo (2016, section 4.2). A row x has the scores :math:`z = W x + b`. Its
loss compares them with the uniform distribution over its labels (the logistic loss: with each
label). Training minimises the mean of these losses plus
:math:`\frac{\lambda}{2} \lVert W \rVert^2`. Cross-validation chooses :math:`\lambda`, and the
threshold or scale by which scores become labels.

From the authors' code (Unbabel/sparsemax on GitHub, train_multilabel_classifier_lbfgs.py): the
penalty, which leaves out the bias, the grids, the largest number of L-BFGS steps, and the macro F1.
`multilabel_table.py` measures data sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.errors import UserError
from tools.papers.multilabel_data import Examples
from tools.papers.multilabel_f1 import f1
from tools.papers.multilabel_fit import fit
from tools.papers.multilabel_grid import Grid
from tools.papers.multilabel_loss import Loss

MICRO_F1 = "micro_f1"
MACRO_F1 = "macro_f1"
CHOOSERS = (MICRO_F1, MACRO_F1)  # each takes its own best lambda and setting


class Fold(NamedTuple):
    """Indices of rows.

    Attributes:
        training: `(rows outside of the fold,)`.
        held_out: `(rows of the fold,)`.
    """

    training: Tensor
    held_out: Tensor


def split(rows: int, folds: int, seed: int) -> list[Fold]:
    """Return a random partition of row indices into folds of almost equal size.

    Raises:
        UserError: there are fewer rows than folds.
    """
    if rows < folds:
        raise UserError(f"too few rows with labels for {folds} folds: {rows}")
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    parts = []
    for held_out in order.tensor_split(folds):
        is_outside = torch.ones(rows, dtype=torch.bool)
        is_outside[held_out] = False
        parts.append(Fold(is_outside.nonzero().squeeze(1), held_out))
    return parts


class Choice(NamedTuple):
    """What cross-validation chose.

    Attributes:
        l2: lambda.
        setting: how scores become labels; see `Loss.predict`.
        f1: F1 on held-out rows, in percent.
    """

    l2: float
    setting: float
    f1: float


def choose(examples: Examples, loss: Loss, grid: Grid, seed: int) -> dict[str, Choice]:
    """Return the best lambda and setting on held-out rows for each of `CHOOSERS`.

    Among equally good choices, the one with the largest lambda and the first setting is returned.

    Args:
        examples: all rows have labels.
        loss: what to minimise.
        grid: what to choose from.
        seed: seed of the folds.
    """
    folds = split(len(examples.labels), grid.folds, seed)
    training = [examples.take(fold.training) for fold in folds]
    labels = torch.cat([examples.labels[fold.held_out] for fold in folds])
    best: dict[str, Choice] = {}
    for l2, models in fit(training, loss, grid.l2, grid.standardise):
        scores = torch.cat(
            [
                model.scores(examples.features[fold.held_out.numpy()])
                for model, fold in zip(models, folds, strict=True)
            ]
        )
        for setting in grid.settings(loss, len(examples.names)):
            measured = f1(labels, loss.predict(scores, setting))
            for chooser in CHOOSERS:
                if chooser not in best or measured[chooser] > best[chooser].f1:
                    best[chooser] = Choice(l2, setting, measured[chooser])
    return best


class Outcome(NamedTuple):
    """Predictions for rows that the model has not seen.

    Attributes:
        predicted: labels `(rows, labels)`, bool.
        probabilities: `(rows, labels)`, those of a sparse loss at the chosen scale.
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
        features: features of the rows to predict.
        loss: what to minimise.
        grid: what to choose from.
        seed: seed of the folds.

    Returns:
        An outcome for each of `CHOOSERS`.

    Raises:
        UserError: there are too few rows with labels.
    """
    labelled = training.take(training.labelled())
    outcomes = {}
    for chooser, choice in choose(labelled, loss, grid, seed).items():
        _, (model,) = next(fit([labelled], loss, [choice.l2], grid.standardise))
        scores = model.scores(features)
        probabilities = loss.probabilities(scores, choice.setting)
        outcomes[chooser] = Outcome(loss.predict(scores, choice.setting), probabilities, [choice])
    return outcomes


def cross_validate(examples: Examples, loss: Loss, grid: Grid, seed: int) -> dict[str, Outcome]:
    """Predict each row by a model that was chosen and fitted without its fold.

    Args:
        examples: all rows; those without labels are predicted, but not trained on.
        loss: what to minimise.
        grid: what to choose from, for each outer fold anew.
        seed: seed of the outer and of the inner folds.

    Returns:
        An outcome for each of `CHOOSERS`.

    Raises:
        UserError: there are too few rows with labels.
    """
    outcomes = {
        chooser: Outcome(
            predicted=torch.zeros_like(examples.labels),
            probabilities=torch.zeros_like(examples.labels).double(),
            choices=[],
        )
        for chooser in CHOOSERS
    }
    for fold in split(len(examples.labels), grid.folds, seed):
        features = examples.features[fold.held_out.numpy()]
        fold_outcomes = train_and_predict(examples.take(fold.training), features, loss, grid, seed)
        for chooser, outcome in fold_outcomes.items():
            outcomes[chooser].predicted[fold.held_out] = outcome.predicted
            outcomes[chooser].probabilities[fold.held_out] = outcome.probabilities
            outcomes[chooser].choices.extend(outcome.choices)
    return outcomes
