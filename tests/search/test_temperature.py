"""`ModelStepper(temperature=...)`: a model decodes as if its scores were divided by a number.

Each test compares the probabilities of all outputs of up to `MAX_LENGTH` tokens.
"""

import pytest
import torch

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.search import ModelStepper, Sampling
from onmt_entmax.search.stepper import Stepper
from tests.search.networks import VOCABULARIES, network, sentences
from tests.search.samples import Outcome, distribution

TEMPERATURE = 2.5
MAX_LENGTH = 2

kinds = pytest.mark.parametrize("kind", ["input-feeding", "transformer"])
alphas = pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])


def model_of(kind: str, alpha: float) -> SparseNMTModel:
    """Return a random network in float64, always the same."""
    return network(kind, alpha=alpha, seed=3)


def with_divided_scores(model: SparseNMTModel) -> SparseNMTModel:
    """Divide the output layer of a model, and so its scores, by the temperature; return it."""
    with torch.no_grad():
        model.generator.weight /= TEMPERATURE
        model.generator.bias /= TEMPERATURE
    return model


def stepper_of(model: SparseNMTModel, temperature: float = 1.0) -> ModelStepper:
    return ModelStepper(model, VOCABULARIES.target, temperature=temperature)


def outputs_of(stepper: Stepper) -> dict[Outcome, float]:
    """Return the outputs of one sentence with their probabilities."""
    (batch,) = sentences(1)
    return distribution(stepper, batch, Sampling(), MAX_LENGTH)


@kinds
@alphas
def test_a_temperature_divides_the_scores(kind: str, alpha: float) -> None:
    outputs = outputs_of(stepper_of(model_of(kind, alpha), TEMPERATURE))
    expected = outputs_of(stepper_of(with_divided_scores(model_of(kind, alpha))))
    assert outputs == pytest.approx(expected, abs=1e-9)  # both in float64


@kinds
@alphas
def test_a_temperature_divides_the_scores_of_a_stepper_in_float64(kind: str, alpha: float) -> None:
    """`double` makes a new stepper, which must have the temperature of the old one."""
    outputs = outputs_of(stepper_of(model_of(kind, alpha), TEMPERATURE).double())
    expected = outputs_of(stepper_of(with_divided_scores(model_of(kind, alpha))))
    assert outputs == pytest.approx(expected, abs=1e-9)


@kinds
@alphas
def test_a_temperature_changes_the_probabilities(kind: str, alpha: float) -> None:
    """At least one output differs by more than 0.001, a million times the tolerance above."""
    outputs = outputs_of(stepper_of(model_of(kind, alpha), TEMPERATURE))
    assert outputs != pytest.approx(outputs_of(stepper_of(model_of(kind, alpha))), abs=1e-3)
