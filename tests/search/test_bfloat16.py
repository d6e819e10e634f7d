"""A stepper whose encoder and decoder multiply in bfloat16: close to one in float32, not equal.

A factor has 8 bits and differs by 0.4 % at most; what is computed may differ by a few percent.
"""

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.search import ModelStepper
from onmt_entmax.search.stepper import SearchError, Step
from tests.search.networks import SMALL_SIZES, VOCABULARIES, network, sentences, together

BATCH = together(sentences(3))
TOKENS = torch.tensor([4, 5, 4])  # a token for each of the three sentences


@pytest.fixture(scope="module")
def model() -> SparseNMTModel:
    torch.manual_seed(1)
    config = ModelConfig(**{**SMALL_SIZES, "encoder_type": "brnn"})
    return build_model(config, VOCABULARIES).eval()


@pytest.fixture
def exact(model: SparseNMTModel) -> ModelStepper:
    return ModelStepper(model, VOCABULARIES.target)


@pytest.fixture
def rough(model: SparseNMTModel) -> ModelStepper:
    return ModelStepper(model, VOCABULARIES.target, dtype=torch.bfloat16)


@torch.inference_mode()
def second_steps(exact: ModelStepper, rough: ModelStepper) -> tuple[Step, Step]:
    """Return the second step of each from the same state, that after an exact first step."""
    state = exact.step(exact.start(BATCH), TOKENS).state
    return exact.step(state, TOKENS), rough.step(state, TOKENS)


def assert_close_but_not_equal(
    result: torch.Tensor, expected: torch.Tensor, tolerance: float
) -> None:
    """Compare values and types: both results are in float32."""
    assert not torch.equal(result, expected)
    torch.testing.assert_close(result, expected, rtol=0, atol=tolerance)


@torch.inference_mode()
def test_the_encoder_multiplies_in_bfloat16(exact: ModelStepper, rough: ModelStepper) -> None:
    """Compare the states that it gives to the decoder."""
    vectors, expected = rough.start(BATCH).vectors, exact.start(BATCH).vectors
    assert_close_but_not_equal(vectors, expected, tolerance=0.02)


def test_the_decoder_multiplies_in_bfloat16(exact: ModelStepper, rough: ModelStepper) -> None:
    """Compare the states after a step."""
    expected, step = second_steps(exact, rough)
    assert_close_but_not_equal(step.state.vectors, expected.state.vectors, tolerance=0.05)


def test_probabilities_are_close_to_those_of_float32(
    exact: ModelStepper, rough: ModelStepper
) -> None:
    expected, step = second_steps(exact, rough)
    assert_close_but_not_equal(step.log_probs.exp(), expected.log_probs.exp(), tolerance=0.05)


@torch.inference_mode()
def test_a_later_stepper_of_the_model_multiplies_in_float32(
    exact: ModelStepper, rough: ModelStepper, model: SparseNMTModel
) -> None:
    before = exact.start(BATCH).vectors
    rough.start(BATCH)
    after = ModelStepper(model, VOCABULARIES.target).start(BATCH).vectors
    assert torch.equal(after, before)


@torch.inference_mode()
def test_a_stepper_in_float64_has_no_product_in_bfloat16(
    exact: ModelStepper, rough: ModelStepper
) -> None:
    expected = exact.double().start(BATCH).sources.stored.memory_bank
    memory_bank = rough.double().start(BATCH).sources.stored.memory_bank
    assert torch.equal(memory_bank, expected)


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_bfloat16_is_refused_where_no_product_takes_it(kind: str) -> None:
    model = network(kind, alpha=1.5, seed=0, double=False)
    with pytest.raises(SearchError, match="bfloat16 is of input-feeding LSTM decoders"):
        ModelStepper(model, VOCABULARIES.target, dtype=torch.bfloat16)
