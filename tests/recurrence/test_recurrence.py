"""Encoder and decoder of whole batches: against OpenNMT-py's own loop, and their gradients."""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.recurrence.backends import pytorch
from tests.recurrence.networks import (
    HIDDEN,
    SENTENCES,
    SOURCE_LENGTHS,
    STEPS,
    TARGET_LENGTHS,
    Network,
    assert_near,
    batch,
    fast_model,
    padded,
    stock_model,
    with_gradients,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-4}


def outputs_of(model: nn.ModuleList) -> Tensor:
    """Return outputs by teacher forcing ``(steps, sentences, hidden)``, zeros at padding."""
    encoder, decoder = model
    source, target = batch()
    states, bank, _ = encoder(source, SOURCE_LENGTHS)
    decoder.init_state(source, bank, states)
    return padded(*decoder.teacher_forced(target, TARGET_LENGTHS, bank, SOURCE_LENGTHS))


def stock_outputs_of(model: nn.ModuleList) -> Tensor:
    """Return the outputs of OpenNMT-py's loop ``(steps, sentences, hidden)``, zeros at padding."""
    encoder, decoder = model
    source, target = batch()
    states, bank, _ = encoder(source, SOURCE_LENGTHS)
    decoder.init_state(source, bank, states)
    outputs, _ = decoder(target, bank, memory_lengths=SOURCE_LENGTHS)
    return outputs * (torch.arange(STEPS).unsqueeze(1) < TARGET_LENGTHS).unsqueeze(2)


@pytest.mark.parametrize(
    ("dtype", "fixed"),
    [
        pytest.param(torch.float64, False, id="float64, packed"),
        pytest.param(torch.float64, True, id="float64, fixed"),
        pytest.param(torch.float32, False, id="float32, packed"),
    ],
)
@pytest.mark.parametrize(
    "network",
    [
        *(
            pytest.param(Network(attention, alpha), id=f"{attention}, alpha {alpha}")
            for attention in ("general", "dot", "mlp")
            for alpha in (1.0, 1.5)
        ),
        *(pytest.param(Network(alpha=alpha), id=f"alpha {alpha}") for alpha in (1.05, 1.2, 2, 3)),
        pytest.param(Network("distance"), id="distance"),
        pytest.param(
            Network(layers=1, bidirectional=False, bridge=True), id="one direction, bridge"
        ),
        pytest.param(Network(layers=1, bridge=True), id="both directions, bridge"),
    ],
)
def test_outputs_and_gradients_equal_those_of_opennmt(
    network: Network, dtype: torch.dtype, fixed: bool
) -> None:
    stock = stock_model(network, dtype)
    expected = with_gradients(stock, stock_outputs_of(stock))
    model = fast_model(network, dtype)
    for part in model:
        part.fixed_shapes = fixed
    assert_near(with_gradients(model, outputs_of(model)), expected, TOLERANCE[dtype])


def test_no_shape_depends_on_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors without memory have no values to read, so a CUDA graph can record the steps."""
    # Entmax in PyTorch reads values; the kernels that graphs record do not.
    monkeypatch.setattr(pytorch, "entmax", lambda scores, alpha: scores.softmax(-1))
    encoder, decoder = fast_model(Network()).to("meta")
    source, target = batch("meta")
    states, bank, lengths = encoder(source, SOURCE_LENGTHS.to("meta"))
    decoder.init_state(source, bank, states)
    outputs, _ = decoder.teacher_forced(target, None, bank, lengths)
    outputs.sum().backward()
    assert outputs.shape == (STEPS * SENTENCES, HIDDEN)
    assert all(parameter.grad is not None for parameter in decoder.parameters())


@pytest.fixture
def model_with_dropout() -> nn.ModuleList:
    return fast_model(Network(dropout=0.4)).train()


def outputs_with_seed(model: nn.ModuleList, seed: int) -> Tensor:
    torch.manual_seed(seed)
    return outputs_of(model)


def test_a_seed_determines_dropout(model_with_dropout: nn.ModuleList) -> None:
    outputs = outputs_with_seed(model_with_dropout, 5)
    assert outputs_with_seed(model_with_dropout, 5).equal(outputs)


def test_another_seed_gives_other_dropout(model_with_dropout: nn.ModuleList) -> None:
    outputs = outputs_with_seed(model_with_dropout, 5)
    assert not outputs_with_seed(model_with_dropout, 6).equal(outputs)


def test_a_seed_determines_the_gradients(model_with_dropout: nn.ModuleList) -> None:
    weights = list(model_with_dropout.parameters())
    first, second = (
        torch.autograd.grad(outputs_with_seed(model_with_dropout, 5).sum(), weights)
        for _ in range(2)
    )
    assert all(map(torch.equal, first, second))


def test_a_second_backward_gives_the_same_gradients(model_with_dropout: nn.ModuleList) -> None:
    weights = list(model_with_dropout.parameters())
    total = outputs_of(model_with_dropout).sum()
    first = torch.autograd.grad(total, weights, retain_graph=True)
    second = torch.autograd.grad(total, weights)
    assert all(map(torch.equal, first, second))


class TestProductsInBfloat16:
    @pytest.fixture(params=[True, False], ids=["oneDNN", "public operators"], autouse=True)
    def multiplication(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", request.param)

    @pytest.fixture
    def results(self) -> list[Tensor]:
        """Outputs, and the gradients of all weights."""
        model = fast_model(Network(), torch.float32)
        for part in model:
            part.matmul_dtype = torch.bfloat16
        return with_gradients(model, outputs_of(model))

    @pytest.fixture
    def expected(self) -> list[Tensor]:
        stock = stock_model(Network(), torch.float32)
        return with_gradients(stock, stock_outputs_of(stock))

    def test_stay_close(self, results: list[Tensor], expected: list[Tensor]) -> None:
        assert_near(results, expected, 0.1)

    def test_are_rounded(self, results: list[Tensor], expected: list[Tensor]) -> None:
        assert not torch.equal(results[0], expected[0])

    def test_leave_outputs_in_float32(self, results: list[Tensor]) -> None:
        assert results[0].dtype == torch.float32


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_gradients_are_difference_quotients(alpha: float) -> None:
    """The quotients are taken in a bias of encoder and decoder, in a random direction.

    `gradcheck` changes weights in place, which must reach the steps.
    """
    encoder, decoder = fast_model(Network(alpha=alpha))
    source, target = (ids[:3, :2] for ids in batch())
    source_lengths, target_lengths = torch.tensor([3, 2]), torch.tensor([2, 3])

    def run(*_: Tensor) -> Tensor:
        states, bank, lengths = encoder(source, source_lengths)
        decoder.init_state(source, bank, states)
        outputs, _positions = decoder.teacher_forced(target, target_lengths, bank, lengths.int())
        return outputs

    weights = [encoder.rnn.bias_hh_l0_reverse, decoder.rnn.layers[0].bias_ih]
    # Else there would be two runs for each number. Tolerances grow with those of the direction.
    assert torch.autograd.gradcheck(run, weights, atol=1e-9, rtol=1e-6, fast_mode=True)
