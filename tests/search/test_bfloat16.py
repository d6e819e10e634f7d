"""Products in bfloat16, in encoder and decoder of one stepper."""

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.search import ModelStepper
from onmt_entmax.search.stepper import SearchError
from tests.search.networks import SMALL_SIZES, VOCABULARIES, network, sentences, together

BATCH = together(sentences(3))
TOKENS = torch.tensor([4, 5, 4])  # one for each sentence


class TestProductsInBfloat16:
    """The same model in float32, and with products in bfloat16.

    A factor has 8 bits and differs by 0.4 % at most; what is computed may differ by a few percent.
    """

    @pytest.fixture(scope="class")
    def model(self) -> SparseNMTModel:
        torch.manual_seed(1)
        config = ModelConfig(**{**SMALL_SIZES, "encoder_type": "brnn"})
        return build_model(config, VOCABULARIES).eval()

    @pytest.fixture
    def exact(self, model: SparseNMTModel) -> ModelStepper:
        return ModelStepper(model, VOCABULARIES.target)

    @pytest.fixture
    def rough(self, model: SparseNMTModel) -> ModelStepper:
        return ModelStepper(model, VOCABULARIES.target, dtype=torch.bfloat16)

    @torch.inference_mode()
    def test_change_the_encoder(self, exact: ModelStepper, rough: ModelStepper) -> None:
        expected, vectors = exact.start(BATCH).vectors, rough.start(BATCH).vectors
        assert vectors.dtype == torch.float32
        assert not torch.equal(vectors, expected)
        torch.testing.assert_close(vectors, expected, rtol=0, atol=0.02)

    @torch.inference_mode()
    def test_change_the_probabilities_of_the_decoder(
        self, exact: ModelStepper, rough: ModelStepper
    ) -> None:
        """From the same state they are close, and not the same."""
        state = exact.start(BATCH)
        for _ in range(2):
            expected, step = exact.step(state, TOKENS), rough.step(state, TOKENS)
            assert not torch.equal(step.log_probs, expected.log_probs)
            torch.testing.assert_close(
                step.log_probs.exp(), expected.log_probs.exp(), rtol=0, atol=0.05
            )
            state = expected.state

    @torch.inference_mode()
    def test_change_the_vectors_of_the_decoder(
        self, exact: ModelStepper, rough: ModelStepper
    ) -> None:
        """From the same state they are close, and still in float32."""
        state = exact.start(BATCH)
        for _ in range(2):
            expected, step = exact.step(state, TOKENS), rough.step(state, TOKENS)
            assert step.state.vectors.dtype == torch.float32
            torch.testing.assert_close(
                step.state.vectors, expected.state.vectors, rtol=0, atol=0.05
            )
            state = expected.state

    @torch.inference_mode()
    def test_change_no_later_stepper_of_the_model(
        self, exact: ModelStepper, rough: ModelStepper, model: SparseNMTModel
    ) -> None:
        before = exact.start(BATCH).vectors
        rough.start(BATCH)
        after = ModelStepper(model, VOCABULARIES.target).start(BATCH).vectors
        assert torch.equal(after, before)

    @torch.inference_mode()
    def test_are_not_taken_in_float64(self, exact: ModelStepper, rough: ModelStepper) -> None:
        expected = exact.double().start(BATCH).sources.stored.memory_bank
        memory_bank = rough.double().start(BATCH).sources.stored.memory_bank
        assert torch.equal(memory_bank, expected)


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_bfloat16_is_refused_where_no_product_takes_it(kind: str) -> None:
    model = network(kind, alpha=1.5, seed=0, double=False)
    with pytest.raises(SearchError, match="bfloat16 is of input-feeding LSTM decoders"):
        ModelStepper(model, VOCABULARIES.target, dtype=torch.bfloat16)
