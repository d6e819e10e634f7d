"""Fits of multi-label classifiers: `tools.papers.multilabel_fit` minimises what it should.

`fit` fits several training sets side by side, for several values of lambda. Here it fits two sets
for two lambdas, and each test looks at one of the four models.
"""

from functools import cache
from typing import Literal, NamedTuple, get_args

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

LAMBDAS = (1.0, 0.1)  # weights of the penalty, in the order in which they are fitted
SIZES = (30, 21)  # rows of the two training sets

# --- training sets ---------------------------------------------------------------------------

Form = Literal["standardised", "sparse"]
"""What the weights are multiplied by: standardised features, or a sparse matrix as it is."""


class TrainingSet(NamedTuple):
    """Rows with labels."""

    examples: Examples
    """The rows, as `fit` takes them."""
    features: Tensor
    """What the weights are multiplied by, `(rows, 4)`."""

    @property
    def labels(self) -> Tensor:
        """0 or 1, `(rows, 3)`."""
        return self.examples.labels.double()


def training_sets(form: Form) -> list[TrainingSet]:
    """Return the two training sets."""
    sets = []
    for seed, rows in enumerate(SIZES):
        examples = random_examples(rows, seed)
        table = torch.from_numpy(examples.features)
        if form == "standardised":
            table = (table - table.mean(0)) / table.std(0, correction=0)
        else:
            examples = examples._replace(features=csr_matrix(examples.features))
        sets.append(TrainingSet(examples, table))
    return sets


# --- fits ------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """A fitted model and the risk that it minimises."""

    model: Linear
    training_set: TrainingSet
    loss: Loss
    l2: float
    """Lambda."""


@cache
def fits(loss: Loss, form: Form) -> dict[float, list[Fit]]:
    """Return the fits of a loss: by lambda, that of each training set.

    They are nearer to the minimum than those in use, so that gradients are zero to 1e-4.
    """
    sets = training_sets(form)
    examples = [training_set.examples for training_set in sets]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multilabel_fit, "TOLERANCE", 1e-8)
        patch.setattr(multilabel_fit, "ITERATIONS", 2000)
        return {
            l2: [Fit(*each, loss, l2) for each in zip(models, sets, strict=True)]
            for l2, models in multilabel_fit.fit(examples, loss, LAMBDAS, form == "standardised")
        }


class Case(NamedTuple):
    """One of the fits of a loss."""

    loss: Loss
    form: Form
    l2: float
    set_number: int

    def __str__(self) -> str:
        return f"{self.loss.name}-{self.form}-lambda {self.l2}-set {self.set_number}"


def cases(*losses: Loss) -> list[Case]:
    """Return the cases of losses: four fits of each form of features."""
    return [
        Case(loss, form, l2, set_number)
        for loss in losses
        for form in get_args(Form)
        for l2 in LAMBDAS
        for set_number in range(len(SIZES))
    ]


@pytest.fixture(params=cases(LOGISTIC, SOFTMAX, ENTMAX, SPARSEMAX), ids=str)
def fit(request: pytest.FixtureRequest) -> Fit:
    case: Case = request.param
    return fits(case.loss, case.form)[case.l2][case.set_number]


def test_scores_are_linear_in_the_features(fit: Fit) -> None:
    expected = fit.training_set.features @ fit.model.weights + fit.model.bias
    torch.testing.assert_close(fit.model.scores(fit.training_set.examples.features), expected)


@pytest.mark.parametrize("fit", cases(SOFTMAX, ENTMAX, SPARSEMAX), ids=str, indirect=True)
def test_the_loss_is_that_of_the_mapping(fit: Fit) -> None:
    """The target is the uniform distribution over a row's labels; the logistic loss has none."""
    labels = fit.training_set.labels
    scores = fit.model.scores(fit.training_set.examples.features)
    target = labels / labels.sum(1, keepdim=True)
    expected = loss_oracle(scores, target, fit.loss.alpha)
    torch.testing.assert_close(fit.loss.losses(scores, labels), expected)


def test_each_model_minimises_the_risk_of_its_own_training_set(fit: Fit) -> None:
    """At the model, the gradient of the mean loss with the penalty is zero.

    So neither the other training set nor the other lambda has moved it.
    """
    weights = fit.model.weights.clone().requires_grad_()
    bias = fit.model.bias.clone().requires_grad_()
    scores = fit.training_set.features @ weights + bias
    losses = fit.loss.losses(scores, fit.training_set.labels)
    risk = losses.mean() + fit.l2 / 2 * weights.square().sum()
    risk.backward()
    assert max(weights.grad.abs().max(), bias.grad.abs().max()) < 1e-4
