"""The recurrence against OpenNMT-py's own loop, and its steps in every implementation."""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.opennmt import Embeddings
from onmt_entmax.recurrence.backends import pytorch
from onmt_entmax.recurrence.backends.native import NativeBackend, native
from onmt_entmax.recurrence.bridge import BridgedRNNEncoder
from onmt_entmax.recurrence.dropout import dropout_factors
from onmt_entmax.recurrence.encoder import FastRNNEncoder
from tests.commands import check_kernels
from tests.recurrence.networks import (
    EMBEDDING,
    HIDDEN,
    PAD,
    SOURCE_LENGTHS,
    STEPS,
    TARGET_LENGTHS,
    VOCABULARY,
    assert_near,
    batch,
    model_of,
    padded,
    with_gradients,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-4}


def outputs_of(model: nn.ModuleList, fast: bool) -> Tensor:
    """Return outputs by teacher forcing ``(steps, batch, hidden)``, zeros at padding."""
    (encoder, decoder), (source, target) = model, batch()
    states, bank, _ = encoder(source, SOURCE_LENGTHS)
    decoder.init_state(source, bank, states)
    if fast:
        return padded(*decoder.teacher_forced(target, TARGET_LENGTHS, bank, SOURCE_LENGTHS))
    outputs, _ = decoder(target, bank, memory_lengths=SOURCE_LENGTHS)
    return outputs * (torch.arange(STEPS).unsqueeze(1) < TARGET_LENGTHS).unsqueeze(2)


@pytest.mark.parametrize(
    ("dtype", "fixed"), [(torch.float64, False), (torch.float64, True), (torch.float32, False)]
)
@pytest.mark.parametrize(
    "options",
    [
        *({"attention": a, "alpha": x} for a in ("general", "dot", "mlp") for x in (1.0, 1.5)),
        *({"alpha": alpha} for alpha in (1.05, 1.2, 2.0, 3.0)),
        {"attention": "distance"},
        {"layers": 1, "both": False, "bridge": True},
        {"layers": 1, "bridge": True},
    ],
    ids=str,
)
def test_equals_opennmt(options: dict[str, object], dtype: torch.dtype, fixed: bool) -> None:
    stock = model_of(False, dtype, **options)
    expected = with_gradients(stock, outputs_of(stock, False))
    model = model_of(True, dtype, **options)
    for part in model:
        part.fixed_shapes = fixed
    assert_near(with_gradients(model, outputs_of(model, True)), expected, TOLERANCE[dtype])


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_bridge_of_several_layers_keeps_sentences_apart(kind: str, both: bool) -> None:
    """Each direction of each sentence is one product with the states of all its layers."""
    torch.manual_seed(1)
    words = Embeddings(EMBEDDING, VOCABULARY, PAD)
    encoder = BridgedRNNEncoder(kind, both, 3, HIDDEN, 0.0, words, True).double()
    source, lengths = batch()[0], SOURCE_LENGTHS
    together = encoder(source, lengths)[0]
    encoder.use_bridge = False
    plain = encoder(source, lengths)[0]
    count = 2 if both else 1
    pairs = zip(together, plain, strict=True) if kind == "LSTM" else [(together, plain)]
    for layer, (found, states) in zip(encoder.bridge, pairs, strict=True):
        for sentence in range(len(lengths)):
            for direction in range(count):
                rows = slice(direction, None, count)
                expected = layer(states[rows, sentence].flatten()).relu()
                torch.testing.assert_close(found[rows, sentence].flatten(), expected)


@pytest.mark.parametrize("fixed", [False, True])
def test_the_fast_encoder_has_the_same_bridge(fixed: bool) -> None:
    torch.manual_seed(1)
    words = Embeddings(EMBEDDING, VOCABULARY, PAD)
    fast = FastRNNEncoder("LSTM", True, 3, HIDDEN, 0.0, words, True).double()
    plain = BridgedRNNEncoder("LSTM", True, 3, HIDDEN, 0.0, words, True).double()
    plain.load_state_dict(fast.state_dict())
    fast.fixed_shapes = fixed
    for ours, theirs in zip(
        *(each(batch()[0], SOURCE_LENGTHS)[0] for each in (fast, plain)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_no_shape_depends_on_a_value(monkeypatch) -> None:
    """Tensors without memory have no values to read, so a CUDA graph can record the steps."""
    monkeypatch.setattr(pytorch, "entmax", lambda scores, alpha: scores.softmax(-1))
    (encoder, decoder), (source, target) = model_of(True).to("meta"), batch("meta")
    states, bank, lengths = encoder(source, SOURCE_LENGTHS.to("meta"))
    decoder.init_state(source, bank, states)
    outputs, _ = decoder.teacher_forced(target, None, bank, lengths)
    outputs.sum().backward()
    assert outputs.shape == (35, HIDDEN)
    assert all(parameter.grad is not None for parameter in decoder.parameters())


def test_backward_twice_and_dropout_from_a_seed() -> None:
    model, made = model_of(True, dropout=0.4).train(), []
    for _ in range(2):
        torch.manual_seed(5)
        outputs = outputs_of(model, True)
        for keep in (True, False):
            made.append(
                torch.autograd.grad(outputs.sum(), list(model.parameters()), retain_graph=keep)
            )
    assert all(torch.equal(a, b) for other in made[1:] for a, b in zip(made[0], other, strict=True))
    assert not torch.equal(outputs_of(model, True), outputs)
    mask = dropout_factors((200, 1001), nn.Dropout(0.3), torch.empty(0))
    assert abs(float((mask == 0).float().mean()) - 0.3) < 0.005
    assert abs(float(mask.mean()) - 1) < 0.01
    assert dropout_factors((3, 2), nn.Dropout(0.3).eval(), torch.empty(0)) is None


@pytest.mark.parametrize("onednn", [True, False])
def test_bfloat16_products_stay_close(onednn: bool, monkeypatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", onednn)
    stock, model = (model_of(fast, torch.float32) for fast in (False, True))
    expected = with_gradients(stock, outputs_of(stock, False))
    for part in model:
        part.matmul_dtype = torch.bfloat16
    found = with_gradients(model, outputs_of(model, True))
    assert found[0].dtype == torch.float32
    assert not torch.equal(found[0], expected[0])
    assert_near(found, expected, 0.1)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_gradcheck(alpha: float) -> None:
    encoder, decoder = model_of(True, alpha=alpha)
    source, target = (part[:3, :2] for part in batch())

    def run(*_: Tensor) -> Tensor:
        states, bank, lengths = encoder(source, torch.tensor([3, 2]))
        decoder.init_state(source, bank, states)
        return decoder.teacher_forced(target, torch.tensor([2, 3]), bank, lengths.int())[0]

    weights = [encoder.rnn.bias_hh_l0_reverse, decoder.rnn.layers[0].bias_ih]
    assert torch.autograd.gradcheck(run, weights, eps=1e-6, atol=1e-6)


def test_wrong_lengths_are_refused() -> None:
    (encoder, decoder), (source, target) = model_of(True), batch()
    with pytest.raises(ValueError, match="longest first"):
        encoder(source, SOURCE_LENGTHS.flip(0))
    with pytest.raises(ValueError, match="a target length is 6"):
        decoder.teacher_forced(target, TARGET_LENGTHS + 1, torch.zeros(1), SOURCE_LENGTHS)
    states, bank, _ = encoder(source, SOURCE_LENGTHS)
    decoder.init_state(source, bank, states)
    with pytest.raises(ValueError, match="from 1 to that of the memory bank"):
        decoder.teacher_forced(target, TARGET_LENGTHS, bank, SOURCE_LENGTHS + 1)


def test_kernels_in_the_interpreter_or_on_a_gpu() -> None:
    pytest.importorskip("triton")
    check_kernels("tests/recurrence/backend_checks.py")


@pytest.mark.skipif(native is None, reason="the native module was not built")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_native_steps(dtype: torch.dtype) -> None:
    from tests.recurrence.backend_checks import check_attention, check_cells

    for factors in (False, True):
        check_cells(NativeBackend, (), factors, "cpu", dtype)
        for alpha in (1.0, 1.33, 1.5, 2.0):
            for source in (13, 515):
                check_attention(NativeBackend, alpha, factors, source, "cpu", dtype)
