"""Encoder and decoder of whole batches against OpenNMT-py's own loop: outputs and gradients."""

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

# Relative to the norm of a tensor. Sums over all steps are taken in another order, and differences
# grow from step to step: in float32, this is two thousand machine epsilons.
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


def test_no_step_reads_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Therefore, a CUDA graph can record them.

    On the device "meta", tensors have no values: reading one would fail. All steps run, forwards
    and backwards, with padding.
    """
    # Entmax in PyTorch reads values; the kernels that graphs record do not.
    monkeypatch.setattr(pytorch, "entmax", lambda scores, alpha: scores.softmax(-1))
    encoder, decoder = fast_model(Network()).to("meta")
    source, target = batch("meta")
    states, bank, lengths = encoder(source, SOURCE_LENGTHS.to("meta"))
    decoder.init_state(source, bank, states)
    outputs, _ = decoder.teacher_forced(target, None, bank, lengths)
    assert outputs.shape == (STEPS * SENTENCES, HIDDEN)
    outputs.sum().backward()
    without_gradient = [name for name, value in decoder.named_parameters() if value.grad is None]
    assert without_gradient == []


# --- dropout ---------------------------------------------------------------------------------


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
    assert [*map(torch.equal, first, second)] == [True] * len(weights)


def test_a_second_backward_gives_the_same_gradients(model_with_dropout: nn.ModuleList) -> None:
    weights = list(model_with_dropout.parameters())
    total = outputs_of(model_with_dropout).sum()
    first = torch.autograd.grad(total, weights, retain_graph=True)
    second = torch.autograd.grad(total, weights)
    assert [*map(torch.equal, first, second)] == [True] * len(weights)


# --- products in bfloat16 --------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["oneDNN", "public operators"])
def results_in_bfloat16(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> list[Tensor]:
    """Outputs and gradients of all weights, from products in bfloat16 with and without oneDNN."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", request.param)
    model = fast_model(Network(), torch.float32)
    for part in model:
        part.matmul_dtype = torch.bfloat16
    return with_gradients(model, outputs_of(model))


@pytest.fixture
def results_in_float32() -> list[Tensor]:
    """Outputs and gradients of all weights, from OpenNMT-py's loop in float32."""
    stock = stock_model(Network(), torch.float32)
    return with_gradients(stock, stock_outputs_of(stock))


def test_products_in_bfloat16_change_results_by_less_than_a_tenth(
    results_in_bfloat16: list[Tensor], results_in_float32: list[Tensor]
) -> None:
    assert_near(results_in_bfloat16, results_in_float32, 0.1)


def test_products_in_bfloat16_are_rounded(
    results_in_bfloat16: list[Tensor], results_in_float32: list[Tensor]
) -> None:
    """Sums of float32 in another order would differ by less than a thousandth."""
    outputs, expected = results_in_bfloat16[0], results_in_float32[0]
    assert (outputs - expected).norm() > 1e-3 * expected.norm()


def test_products_in_bfloat16_leave_outputs_in_float32(results_in_bfloat16: list[Tensor]) -> None:
    assert results_in_bfloat16[0].dtype == torch.float32


# --- gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_gradients_equal_finite_differences(alpha: float) -> None:
    """The gradients are with respect to a bias of the encoder and one of the decoder.

    `gradcheck` changes these in place, and the steps must use the changed values.
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
    # The fast mode compares along one random direction: otherwise there would be two runs for each
    # number of the biases. It multiplies the tolerances by the norms of directions, so they are
    # smaller than the defaults here.
    assert torch.autograd.gradcheck(run, weights, atol=1e-9, rtol=1e-6, fast_mode=True)
