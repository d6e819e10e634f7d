"""Fits of multi-label classifiers: `tools.papers.multilabel_fit` minimises what it should."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

import pytest
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from tests.oracles import loss_oracle
from tests.papers.multilabel_examples import (
    ENTMAX,
    LOGISTIC,
    SOFTMAX,
    SPARSEMAX,
    random_examples,
)
from tools.papers import multilabel_fit
from tools.papers.multilabel_data import Examples
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_model import Linear

Form = Literal["standardised", "sparse"]


class Fit(NamedTuple):
    """A fitted model and what it was fitted to."""

    model: Linear
    examples: Examples
    features: Tensor
    """What the weights are multiplied by, `(rows, 4)`."""
    loss: Loss
    l2: float

    @property
    def labels(self) -> Tensor:
        """0 or 1, `(rows, 3)`."""
        return self.examples.labels.double()


def fits_of(loss: Loss, form: Form) -> Iterator[Fit]:
    """Fit two training sets side by side, for two values of lambda.

    Args:
        loss: what is minimised.
        form: of the features.
    """
    sets = [random_examples(), random_examples(21, seed=1)]
    features = [torch.from_numpy(examples.features) for examples in sets]
    if form == "standardised":
        features = [(table - table.mean(0)) / table.std(0, correction=0) for table in features]
    else:
        sets = [part._replace(features=csr_matrix(part.features)) for part in sets]
    for l2, models in multilabel_fit.fit(sets, loss, (0.1, 1.0), form == "standardised"):
        for model, examples, table in zip(models, sets, features, strict=True):
            yield Fit(model, examples, table, loss, l2)


def fitted_by(*losses: Loss) -> list[Any]:
    """Return the parameters of `fits` for losses."""
    return [
        pytest.param((loss, form), id=f"{loss.name}-{form}")
        for loss in losses
        for form in get_args(Form)
    ]


@pytest.fixture(scope="module", params=fitted_by(LOGISTIC, SOFTMAX, ENTMAX, SPARSEMAX))
def fits(request: pytest.FixtureRequest) -> list[Fit]:
    """Models nearer to the minimum than in use, so that their gradients are zero to 1e-4."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multilabel_fit, "TOLERANCE", 1e-8)
        patch.setattr(multilabel_fit, "ITERATIONS", 2000)
        return list(fits_of(*request.param))


def test_scores_are_linear_in_the_features(fits: list[Fit]) -> None:
    for fit in fits:
        expected = fit.features @ fit.model.weights + fit.model.bias
        torch.testing.assert_close(fit.model.scores(fit.examples.features), expected)


@pytest.mark.parametrize("fits", fitted_by(SOFTMAX, ENTMAX, SPARSEMAX), indirect=True)
def test_the_loss_is_that_of_the_mapping(fits: list[Fit]) -> None:
    """The target is the uniform distribution over a row's labels."""
    for fit in fits:
        scores = fit.model.scores(fit.examples.features)
        target = fit.labels / fit.labels.sum(1, keepdim=True)
        expected = loss_oracle(scores, target, fit.loss.alpha)
        torch.testing.assert_close(fit.loss.losses(scores, fit.labels), expected)


def test_a_fit_is_a_minimum_whatever_its_neighbours(fits: list[Fit]) -> None:
    """The gradient of the regularised risk of each training set vanishes at its model."""
    for fit in fits:
        weights, bias = (
            part.clone().requires_grad_() for part in (fit.model.weights, fit.model.bias)
        )
        losses = fit.loss.losses(fit.features @ weights + bias, fit.labels)
        risk = losses.mean() + fit.l2 / 2 * weights.square().sum()
        risk.backward()
        assert max(weights.grad.abs().max(), bias.grad.abs().max()) < 1e-4
