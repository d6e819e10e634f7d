"""Steps of a search by recurrent models: the prepared decoder against OpenNMT-py's own step."""

from typing import Any

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.search import ModelStepper, SearchConfig, beam_search
from onmt_entmax.search.opennmt_decoding import OpenNMTDecoding
from onmt_entmax.search.recurrent_decoding import RecurrentState
from onmt_entmax.search.stepper import SearchError
from onmt_entmax.sparse import log_entmax
from tests.recurrence.networks import Distance
from tests.search.networks import SMALL, VOCABULARIES, network, sentences, stepper, together

COVERED: list[dict[str, Any]] = [
    {"encoder_type": "brnn", "global_attention_alpha": 1.5},
    {"global_attention": "dot", "global_attention_alpha": 1.0, "dec_layers": 1, "enc_layers": 1},
    {"global_attention_alpha": 1.3, "dec_layers": 3, "enc_layers": 3},
]


def pair(
    changes: dict[str, Any], *, alpha: float, double: bool
) -> tuple[ModelStepper, ModelStepper]:
    """Return two steppers of one model: with prepared weights, and with OpenNMT-py's step."""
    torch.manual_seed(1)
    model = build_model(ModelConfig(**{**SMALL, **changes}, generator_alpha=alpha), VOCABULARIES)
    model = model.eval().double() if double else model.eval()
    prepared, plain = stepper(model, attention=True), stepper(model, attention=True)
    plain._decoding = OpenNMTDecoding(model.decoder, plain._output, attention=True)
    return prepared, plain


@pytest.mark.parametrize("double", [True, False], ids=["float64", "float32"])
@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 2.0])
@pytest.mark.parametrize("changes", COVERED, ids=["general", "dot", "three layers"])
@torch.inference_mode()
def test_a_step_is_opennmts(changes: dict[str, Any], alpha: float, double: bool) -> None:
    steppers = pair(changes, alpha=alpha, double=double)
    batches = together(sentences(5)), together(sentences(3, 1))
    states = [one.start(batches[0]) for one in steppers]
    assert isinstance(states[0], RecurrentState)
    assert not isinstance(states[1], RecurrentState)
    # Rows of one sentence need not be neighbours, and a sentence may have none.
    plan = ([0, 1, 2, 3, 4], [3, 0, 0, 2, 3, 3], [5, 1, 0], [2, 1, 0, 2])
    for number, rows in enumerate(plan):
        states = [
            one.select(state, torch.tensor(rows))
            for one, state in zip(steppers, states, strict=True)
        ]
        if number == 2:  # others join
            states = [
                one.join([state, one.start(batches[1])])
                for one, state in zip(steppers, states, strict=True)
            ]
        count = len(rows) + (3 if number == 2 else 0)
        tokens = torch.arange(count) % len(VOCABULARIES.target)
        fast, slow = (one.step(state, tokens) for one, state in zip(steppers, states, strict=True))
        # A logarithm near the edge of the support magnifies rounding: probabilities are compared.
        least = 1e-12 if double else 1e-6
        assert torch.allclose(fast.log_probs.exp(), slow.log_probs.exp(), rtol=0, atol=least)
        assert fast.source_lengths.tolist() == slow.source_lengths.tolist()
        width = fast.attention.size(1)
        assert torch.allclose(fast.attention, slow.attention[:, :width], rtol=0, atol=least)
        assert slow.attention[:, width:].eq(0).all()
        states = [fast.state, slow.state]


@pytest.mark.parametrize("kind", ["lstm", "gru", "mean", "transformer"])
def test_what_is_not_covered_runs_through_opennmt(kind: str) -> None:
    """`mean` has a context gate; the others are no input-feeding LSTMs."""
    model = stepper(network(kind, 1.5, 0))
    with torch.inference_mode():
        assert not isinstance(model.start(sentences(1)[0]), RecurrentState)


def test_float64_is_computed_by_opennmt() -> None:
    prepared, _ = pair(COVERED[0], alpha=1.5, double=False)
    with torch.inference_mode():
        assert not isinstance(prepared.double().start(sentences(1)[0]), RecurrentState)


@pytest.mark.parametrize(
    ("kind", "can_join"), [("input-feeding", True), ("lstm", True), ("transformer", False)]
)
def test_only_rows_of_a_transformer_share_a_position(kind: str, can_join: bool) -> None:
    assert stepper(network(kind, 1.5, 0)).can_join == can_join


def test_a_mean_encoder_has_no_float64() -> None:
    model = stepper(network("mean", 1.5, 0, double=False))
    with pytest.raises(SearchError, match="mean encoder cannot be computed in float64"):
        model.double()


def test_both_give_the_same_outputs_and_certificates() -> None:
    prepared, plain = pair(COVERED[0], alpha=1.5, double=True)
    config = SearchConfig(beam_size=4, n_best=2, max_length=8)
    batch = together(sentences(8))
    results = zip(*(beam_search(one, batch, config) for one in (prepared, plain)), strict=True)
    for fast, slow in results:
        assert [h.tokens for h in fast.hypotheses] == [h.tokens for h in slow.hypotheses]
        assert fast.certificate.level == slow.certificate.level
        assert (fast.rows, fast.support) == (slow.rows, slow.support)


def test_steps_of_scores_that_are_no_products_are_those_of_training() -> None:
    """Neither training nor decoding may take the products of `dot`, which the module inherits."""
    model = network("input-feeding", 1.5, 3)
    products = ModelStepper(model, VOCABULARIES.target)
    model.decoder.attn = Distance(8).double()
    batch = make_batch([Example([2, 3, 4], [5, 4, 4], 0)], VOCABULARIES)
    stepper = ModelStepper(model, VOCABULARIES.target)
    with torch.inference_mode():
        hidden, target = model.hidden_states(batch)
        expected = log_entmax(model.generator.scores(hidden), 1.5)
        state, others = stepper.start(batch), products.start(batch)
        tokens = [VOCABULARIES.target.bos, *target.tolist()[:-1]]
        for token, row in zip(tokens, expected, strict=True):
            step = stepper.step(state, torch.tensor([token]))
            torch.testing.assert_close(step.log_probs[0].exp(), row.exp())
            state = step.state
    assert not isinstance(state, RecurrentState)
    assert isinstance(others, RecurrentState)


class Forward(EntmaxGlobalAttention):
    """Attention with a forward pass of its own, which need not compute products."""

    def forward(self, *arguments: Any) -> Any:
        return super().forward(*arguments)


def with_another_score() -> EntmaxGlobalAttention:
    """Return attention whose scores were replaced after it was made."""
    attention = EntmaxGlobalAttention(8, "dot")
    attention.score = lambda h_t, h_s: h_t @ h_s.mT  # type: ignore[method-assign]
    return attention


@pytest.mark.parametrize("name", ["dot", "general"])
def test_scores_of_dot_and_general_are_products(name: str) -> None:
    assert EntmaxGlobalAttention(8, name).can_project


@pytest.mark.parametrize(
    "attention",
    [EntmaxGlobalAttention(8, "mlp"), Distance(8), Forward(8), with_another_score()],
    ids=["mlp", "other scores", "another forward pass", "replaced scores"],
)
def test_other_scores_are_no_products(attention: EntmaxGlobalAttention) -> None:
    assert not attention.can_project
    with pytest.raises(ValueError, match="are no products"):
        attention.project(torch.ones(1, 3, 8))


class TestProductsInBfloat16:
    """Encoder and decoder of one stepper take them."""

    @pytest.fixture(scope="class")
    def model(self) -> SparseNMTModel:
        torch.manual_seed(1)
        config = ModelConfig(**{**SMALL, "encoder_type": "brnn"})
        return build_model(config, VOCABULARIES).eval()

    @pytest.fixture
    def exact(self, model: SparseNMTModel) -> ModelStepper:
        return ModelStepper(model, VOCABULARIES.target)

    @pytest.fixture
    def rough(self, model: SparseNMTModel) -> ModelStepper:
        return ModelStepper(model, VOCABULARIES.target, dtype=torch.bfloat16)

    BATCH = together(sentences(3))
    TOKENS = torch.tensor([4, 5, 4])

    @torch.inference_mode()
    def test_change_the_encoder(self, exact: ModelStepper, rough: ModelStepper) -> None:
        expected, vectors = exact.start(self.BATCH).vectors, rough.start(self.BATCH).vectors
        assert vectors.dtype == torch.float32
        assert not torch.equal(vectors, expected)
        torch.testing.assert_close(vectors, expected, rtol=0, atol=0.02)

    @torch.inference_mode()
    def test_change_the_decoder(self, exact: ModelStepper, rough: ModelStepper) -> None:
        """From the same state, probabilities and vectors are close, and not the same."""
        state = exact.start(self.BATCH)
        for _ in range(2):
            expected, step = exact.step(state, self.TOKENS), rough.step(state, self.TOKENS)
            assert not torch.equal(step.log_probs, expected.log_probs)
            torch.testing.assert_close(
                step.log_probs.exp(), expected.log_probs.exp(), rtol=0, atol=0.05
            )
            assert step.state.vectors.dtype == torch.float32
            torch.testing.assert_close(
                step.state.vectors, expected.state.vectors, rtol=0, atol=0.05
            )
            state = expected.state

    @torch.inference_mode()
    def test_change_no_later_stepper_of_the_model(
        self, exact: ModelStepper, rough: ModelStepper, model: SparseNMTModel
    ) -> None:
        before = exact.start(self.BATCH).vectors
        rough.start(self.BATCH)
        after = ModelStepper(model, VOCABULARIES.target).start(self.BATCH).vectors
        assert torch.equal(after, before)

    @torch.inference_mode()
    def test_are_not_taken_in_float64(self, exact: ModelStepper, rough: ModelStepper) -> None:
        banks = [each.double().start(self.BATCH).source.memory_bank for each in (exact, rough)]
        assert torch.equal(*banks)


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_bfloat16_is_refused_where_no_product_takes_it(kind: str) -> None:
    model = network(kind, 1.5, 0, double=False)
    with pytest.raises(SearchError, match="bfloat16 is of input-feeding LSTM decoders"):
        ModelStepper(model, VOCABULARIES.target, dtype=torch.bfloat16)
