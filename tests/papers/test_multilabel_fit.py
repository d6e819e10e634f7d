"""Linear multi-label models are fitted by `tools.papers.multilabel_fit.fit`.

It fits several training sets for several values of lambda in one call. Here it fits two sets for
two lambdas, and each test looks at one of the four models.
"""

import pytest
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from tests.papers.multilabel_examples import (
    ENTMAX,
    LOGISTIC,
    SOFTMAX,
    SPARSEMAX,
    random_examples,
)
from tools.papers.multilabel_fit import fit
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_model import LinearModel

# They differ in their numbers of rows, so that a row's share in the mean loss differs, too.
DENSE = [random_examples(30, seed=0), random_examples(21, seed=1)]
SPARSE = [examples._replace(features=csr_matrix(examples.features)) for examples in DENSE]
LAMBDAS = [1.0, 0.1]

each_lambda = pytest.mark.parametrize("l2", LAMBDAS)
each_set = pytest.mark.parametrize("number", [0, 1], ids=["first set", "second set"])


@pytest.fixture(
    scope="module", params=[LOGISTIC, SOFTMAX, ENTMAX, SPARSEMAX], ids=lambda loss: loss.name
)
def loss(request: pytest.FixtureRequest) -> Loss:
    return request.param


@pytest.fixture(scope="module", params=[True, False], ids=["standardised", "sparse"])
def standardise(request: pytest.FixtureRequest) -> bool:
    """Whether the features are standardised; only sparse ones are not."""
    return request.param


@pytest.fixture(scope="module")
def models(loss: Loss, standardise: bool) -> dict[float, list[LinearModel]]:
    """Return the model of each training set, by lambda.

    They are fitted more closely than those in use, so that a gradient that is zero at the minimum
    is below 1e-4 here.
    """
    training = DENSE if standardise else SPARSE
    return dict(fit(training, loss, LAMBDAS, standardise, tolerance=1e-8))


def design_matrix(number: int, standardise: bool) -> Tensor:
    """Return what the weights of a training set's model are multiplied by, `(rows, 4)`."""
    table = torch.from_numpy(DENSE[number].features)
    if not standardise:
        return table
    return (table - table.mean(0)) / table.std(0, correction=0)


@each_lambda
@each_set
def test_scores_are_linear_in_the_features_of_the_training_set(
    models: dict[float, list[LinearModel]], standardise: bool, l2: float, number: int
) -> None:
    model = models[l2][number]
    scores = model.scores((DENSE if standardise else SPARSE)[number].features)
    expected = design_matrix(number, standardise) @ model.weights + model.bias
    torch.testing.assert_close(scores, expected)


@each_lambda
@each_set
def test_each_model_minimises_the_risk_of_its_own_training_set(
    models: dict[float, list[LinearModel]], loss: Loss, standardise: bool, l2: float, number: int
) -> None:
    """At the model, the gradient of the mean loss with the penalty is zero.

    So neither the other training set nor the other lambda has moved it.
    """
    weights = models[l2][number].weights.clone().requires_grad_()
    bias = models[l2][number].bias.clone().requires_grad_()
    scores = design_matrix(number, standardise) @ weights + bias
    losses = loss.losses(scores, DENSE[number].labels.double())
    risk = losses.mean() + l2 / 2 * weights.square().sum()
    risk.backward()
    assert max(weights.grad.abs().max(), bias.grad.abs().max()) < 1e-4
