"""The fast decoder against OpenNMT-py's own: values and every gradient."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.lstm.cells import dropout_mask
from onmt_entmax.nn.lstm.decoder import FastInputFeedRNNDecoder
from onmt_entmax.nn.lstm.encoder import FastRNNEncoder
from onmt_entmax.opennmt import Embeddings, InputFeedRNNDecoder

HIDDEN, EMBEDDING, VOCABULARY, PAD = 20, 12, 30, 1
SOURCE_LENGTHS = torch.tensor([6, 6, 5, 4, 3, 2, 1])
TARGET_LENGTHS = torch.tensor([3, 5, 1, 5, 4, 2, 5])
BATCH, SOURCE, TARGET = 7, 6, 5
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}

Decoder = type[InputFeedRNNDecoder]


def make_decoder(
    kind: Decoder,
    attention: str = "general",
    alpha: float | None = 1.5,
    dtype: torch.dtype = torch.float64,
    layers: int = 2,
    **options: object,
) -> InputFeedRNNDecoder:
    """Return a decoder whose weights depend on the arguments only; alpha None: stock attention."""
    torch.manual_seed(1)
    embeddings = Embeddings(EMBEDDING, VOCABULARY, PAD)
    arguments = {"rnn_type": "LSTM", "dropout": 0.0, **options}
    rnn_type = arguments.pop("rnn_type")
    decoder = kind(
        rnn_type, False, layers, HIDDEN, attn_type=attention, embeddings=embeddings, **arguments
    )
    if alpha is not None:
        decoder.attn = EntmaxGlobalAttention(HIDDEN, attention, alpha)
    for parameter in decoder.parameters():
        nn.init.uniform_(parameter, -0.4, 0.4)
    return decoder.to(dtype)


class Case:
    """A decoder's inputs, the same each time, and weights for a loss that uses every output."""

    def __init__(self, dtype: torch.dtype = torch.float64, layers: int = 2) -> None:
        torch.manual_seed(0)
        shape = (layers, BATCH, HIDDEN)
        self.bank = torch.randn(SOURCE, BATCH, HIDDEN, dtype=dtype).requires_grad_()
        self.hidden = (torch.randn(shape, dtype=dtype) * 0.3).requires_grad_()
        self.cell = (torch.randn(shape, dtype=dtype) * 0.3).requires_grad_()
        self.target = torch.randint(2, VOCABULARY, (TARGET, BATCH, 1))
        self.weights = torch.randn(TARGET, BATCH, HIDDEN, dtype=dtype)

    def start(self, decoder: InputFeedRNNDecoder) -> None:
        state: tuple[Tensor, ...] = (self.hidden, self.cell)
        if decoder.rnn.__class__.__name__ == "StackedGRU":
            state = (self.hidden,)
        decoder.init_state(None, self.bank, state if len(state) > 1 else state[0])

    def padded(self, decoder: InputFeedRNNDecoder) -> tuple[Tensor, dict[str, Tensor]]:
        self.start(decoder)
        return decoder(self.target, self.bank, memory_lengths=SOURCE_LENGTHS)

    def packed(self, decoder: FastInputFeedRNNDecoder) -> tuple[Tensor, Tensor]:
        self.start(decoder)
        return decoder.packed_forward(self.target, TARGET_LENGTHS, self.bank, SOURCE_LENGTHS)

    def gradients(self, loss: Tensor, module: nn.Module) -> dict[str, Tensor]:
        """Return all gradients by name, zeros where there is none."""
        names = {"bank": self.bank, "hidden": self.hidden, "cell": self.cell}
        names.update(module.named_parameters())
        grads = torch.autograd.grad(loss, list(names.values()), allow_unused=True)
        return {
            name: torch.zeros_like(tensor) if grad is None else grad
            for (name, tensor), grad in zip(names.items(), grads, strict=True)
        }


def assert_equal(ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float) -> None:
    """Compare norms of the differences with norms of the expected tensors."""
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        error = (ours[name] - expected).norm()
        assert error <= tolerance * expected.norm() + 1e-14, f"{name}: {error}"


def real(outputs: Tensor) -> Tensor:
    """Return the outputs with zeros after the end of each target."""
    steps = torch.arange(TARGET).unsqueeze(1)
    return outputs * (steps < TARGET_LENGTHS).unsqueeze(-1)


@pytest.fixture
def only_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if OpenNMT-py's own loop runs."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the slow loop ran")

    monkeypatch.setattr(InputFeedRNNDecoder, "_run_forward_pass", fail)


@pytest.fixture
def only_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the fast recurrence runs."""
    monkeypatch.setattr("onmt_entmax.nn.lstm.decoder.InputFeedRecurrence", None)


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("attention", ["dot", "general", "mlp"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_decoder_equals_opennmt(attention: str, alpha: float, dtype: torch.dtype) -> None:
    case = Case(dtype)
    stock = make_decoder(InputFeedRNNDecoder, attention, alpha, dtype)
    outputs, attended = case.padded(stock)
    expected = case.gradients((real(outputs) * case.weights).sum(), stock)
    fast = make_decoder(FastInputFeedRNNDecoder, attention, alpha, dtype)
    packed, index = case.packed(fast)
    theirs = outputs.flatten(0, 1)[index]
    tolerance = TOLERANCE[dtype]
    assert (packed - theirs).norm() <= tolerance * theirs.norm()
    loss = (packed * case.weights.flatten(0, 1)[index]).sum()
    assert_equal(case.gradients(loss, fast), expected, tolerance)
    padded, weights = case.padded(fast)
    assert (padded - outputs).norm() <= tolerance * outputs.norm()
    assert (weights["std"] - attended["std"]).abs().max() <= tolerance
    loss = (real(padded) * case.weights).sum()
    assert_equal(case.gradients(loss, fast), expected, tolerance)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("function", ["softmax", "sparsemax"])
def test_decoder_with_opennmts_own_attention(layers: int, function: str, only_fast: None) -> None:
    case = Case(layers=layers)
    fast = make_decoder(FastInputFeedRNNDecoder, alpha=None, layers=layers, attn_func=function)
    alpha = 1.0 if function == "softmax" else 2.0
    entmax_fast = make_decoder(FastInputFeedRNNDecoder, alpha=alpha, layers=layers)
    entmax_fast.load_state_dict(fast.state_dict())
    outputs, _ = case.padded(fast)
    assert torch.equal(outputs, case.padded(entmax_fast)[0])


def test_last_states_and_attention_have_gradients() -> None:
    case = Case()
    results = []
    for kind in (InputFeedRNNDecoder, FastInputFeedRNNDecoder):
        decoder = make_decoder(kind)
        outputs, attended = case.padded(decoder)
        hidden, cell = decoder.state["hidden"]
        loss = (attended["std"] ** 2).sum() + (hidden * case.hidden).sum() + cell.square().sum()
        results.append(case.gradients(loss + outputs.sum(), decoder))
    assert_equal(results[1], results[0], 1e-10)


def test_continues_from_its_own_state() -> None:
    """Two pieces, as in truncated backpropagation, equal the whole."""
    case = Case()
    fast = make_decoder(FastInputFeedRNNDecoder)
    whole, _ = case.padded(fast)
    expected = case.gradients((whole * case.weights).sum(), fast)
    case.start(fast)
    pieces = [
        fast(part, case.bank, memory_lengths=SOURCE_LENGTHS)[0]
        for part in (case.target[:2], case.target[2:])
    ]
    assert torch.allclose(torch.cat(pieces), whole)
    assert_equal(case.gradients((torch.cat(pieces) * case.weights).sum(), fast), expected, 1e-10)


class Replay(nn.Module):
    """Dropout with given factors, one slice a call."""

    def __init__(self, slices: list[Tensor]) -> None:
        super().__init__()
        self.slices = iter(slices)

    def forward(self, x: Tensor) -> Tensor:
        return x * next(self.slices)


@pytest.mark.parametrize("attention", ["general", "mlp"])
def test_dropout_equals_opennmt_with_the_same_factors(
    attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, layers = Case(layers=3), 3
    torch.manual_seed(5)
    shape = (layers - 1, TARGET, BATCH, HIDDEN)
    between = dropout_mask(shape, 0.4, case.bank)
    above = dropout_mask(shape[1:], 0.4, case.bank)
    assert between is not None
    assert above is not None
    drawn = {3: between.flatten(1, 2), 2: above.flatten(0, 1)}
    monkeypatch.setattr(
        "onmt_entmax.nn.lstm.decoder.dropout_mask", lambda shape, *_: drawn[len(shape)]
    )
    fast = make_decoder(FastInputFeedRNNDecoder, attention, layers=layers, dropout=0.4)
    outputs, _ = case.padded(fast)
    ours = case.gradients((outputs * case.weights).sum(), fast)
    stock = make_decoder(InputFeedRNNDecoder, attention, layers=layers, dropout=0.4)
    stock.rnn.dropout = Replay(list(between.transpose(0, 1).flatten(0, 1)))
    stock.dropout = Replay(list(above))
    expected_outputs, _ = case.padded(stock)
    expected = case.gradients((expected_outputs * case.weights).sum(), stock)
    assert torch.allclose(outputs, expected_outputs)
    assert_equal(ours, expected, 1e-10)


def test_dropout_is_repeatable_and_only_in_training() -> None:
    case = Case()
    fast = make_decoder(FastInputFeedRNNDecoder, dropout=0.4)
    torch.manual_seed(3)
    first, _ = case.packed(fast)
    second, _ = case.packed(fast)
    torch.manual_seed(3)
    again, _ = case.packed(fast)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    plain = make_decoder(FastInputFeedRNNDecoder)
    fast.eval()
    assert torch.equal(case.packed(fast)[0], case.packed(plain)[0])


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0])
@pytest.mark.parametrize("attention", ["dot", "general", "mlp"])
def test_gradcheck(attention: str, alpha: float) -> None:
    fast = make_decoder(FastInputFeedRNNDecoder, attention, alpha)
    case = Case()

    def run(bank: Tensor, hidden: Tensor, cell: Tensor) -> Tensor:
        fast.init_state(None, bank, (hidden, cell))
        lengths = torch.tensor([2, 3])
        return fast.packed_forward(case.target[:3, :2], lengths, bank, torch.tensor([4, 2]))[0]

    inputs = (case.bank[:4, :2], case.hidden[:, :2], case.cell[:, :2])
    inputs = tuple(tensor.detach().requires_grad_() for tensor in inputs)
    assert torch.autograd.gradcheck(run, inputs, eps=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"rnn_type": "GRU"},
        {"context_gate": "both"},
        {"coverage_attn": True, "alpha": None},
        {"copy_attn": True},
        {"copy_attn": True, "reuse_copy_attn": True},
    ],
)
def test_uncovered_options_run_as_in_opennmt(options: dict[str, object], only_slow: None) -> None:
    case = Case()
    fast = make_decoder(FastInputFeedRNNDecoder, **options)
    stock = make_decoder(InputFeedRNNDecoder, **options)
    outputs, _ = case.padded(stock)
    packed, index = case.packed(fast)
    assert torch.equal(packed, outputs.flatten(0, 1)[index])


def test_single_steps_run_as_in_opennmt(only_slow: None) -> None:
    case = Case()
    fast, stock = make_decoder(FastInputFeedRNNDecoder), make_decoder(InputFeedRNNDecoder)
    whole, _ = case.padded(stock)
    case.start(fast)
    for step, ids in enumerate(case.target.split(1)):
        output, _ = fast(ids, case.bank, memory_lengths=SOURCE_LENGTHS, step=step)
        assert torch.allclose(output[0], whole[step])


def test_same_state_dict() -> None:
    stock = make_decoder(InputFeedRNNDecoder)
    fast = make_decoder(FastInputFeedRNNDecoder)
    assert stock.state_dict().keys() == fast.state_dict().keys()


def test_packed_forward_returns_the_positions() -> None:
    _, index = Case().packed(make_decoder(FastInputFeedRNNDecoder))
    positions = [(at // BATCH, at % BATCH) for at in index.tolist()]
    expected = {(t, b) for b, length in enumerate(TARGET_LENGTHS) for t in range(int(length))}
    assert set(positions) == expected
    assert len(positions) == len(expected)


def test_target_lengths_beyond_the_target_are_refused() -> None:
    case, fast = Case(), make_decoder(FastInputFeedRNNDecoder)
    case.start(fast)
    with pytest.raises(ValueError, match="a target length is 6, but the decoder's input has 5"):
        fast.packed_forward(case.target, TARGET_LENGTHS + 1, case.bank)


def test_nothing_keeps_a_finished_graph_alive() -> None:
    case, fast = Case(), make_decoder(FastInputFeedRNNDecoder)
    gc.disable()
    try:
        outputs, _ = case.padded(fast)
        fast.init_state(None, case.bank.detach(), (case.hidden.detach(), case.cell.detach()))
        node = weakref.ref(outputs.grad_fn.next_functions[0][0].readout)
        assert node() is not None
        del outputs, _
        assert node() is None
    finally:
        gc.enable()


def test_backward_twice_gives_the_same() -> None:
    case, fast = Case(), make_decoder(FastInputFeedRNNDecoder)
    packed, _ = case.packed(fast)
    first = torch.autograd.grad(packed.sum(), case.bank, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(packed.sum(), case.bank)[0])


def test_bfloat16_products_keep_gradients_close() -> None:
    case = Case(torch.float32)
    grads = []
    for dtype in (None, torch.bfloat16):
        fast = make_decoder(FastInputFeedRNNDecoder, dtype=torch.float32)
        fast.matmul_dtype = dtype
        packed, index = case.packed(fast)
        assert packed.dtype == torch.float32
        grads.append(case.gradients((packed * case.weights.flatten(0, 1)[index]).sum(), fast))
    assert_equal(grads[1], grads[0], 0.05)
    assert not torch.equal(grads[1]["bank"], grads[0]["bank"])


def test_autocast_changes_nothing() -> None:
    case, fast = Case(torch.float32), make_decoder(FastInputFeedRNNDecoder, dtype=torch.float32)
    plain, _ = case.packed(fast)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(case.packed(fast)[0], plain)


@pytest.mark.parametrize("quick", [True, False])
def test_gradients_under_autocast(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backward pass under autocast is the same, with and without oneDNN."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", quick)
    case, fast = Case(torch.float32), make_decoder(FastInputFeedRNNDecoder, dtype=torch.float32)
    expected = case.gradients(case.packed(fast)[0].square().sum(), fast)
    loss = case.packed(fast)[0].square().sum()
    with torch.autocast("cpu", torch.bfloat16):
        assert_equal(case.gradients(loss, fast), expected, 1e-6)


def test_float64_layers_are_not_read_as_float32() -> None:
    case, fast = Case(torch.float32), make_decoder(FastInputFeedRNNDecoder, dtype=torch.float32)
    fast.matmul_dtype = torch.bfloat16
    expected = case.packed(fast)[0]
    fast.rnn.double()
    assert torch.allclose(case.packed(fast)[0].float(), expected, atol=0.05)


def test_a_model_learns() -> None:
    """Training encoder and decoder lowers the loss, and every weight has a gradient."""
    torch.manual_seed(0)
    source = torch.randint(2, VOCABULARY, (SOURCE, BATCH, 1))
    encoder = FastRNNEncoder("LSTM", True, 2, HIDDEN, 0.1, Embeddings(EMBEDDING, VOCABULARY, PAD))
    decoder = FastInputFeedRNNDecoder(
        "LSTM", True, 2, HIDDEN, dropout=0.1, embeddings=Embeddings(EMBEDDING, VOCABULARY, PAD)
    )
    decoder.attn = EntmaxGlobalAttention(HIDDEN, "general", 1.5)
    output = nn.Linear(HIDDEN, VOCABULARY)
    model = nn.ModuleList([encoder, decoder, output])
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    case, losses = Case(), []
    for _ in range(40):
        optimizer.zero_grad()
        state, bank, _ = encoder(source, SOURCE_LENGTHS)
        decoder.init_state(source, bank, state)
        packed, index = decoder.packed_forward(case.target, TARGET_LENGTHS, bank, SOURCE_LENGTHS)
        loss = nn.functional.cross_entropy(output(packed), case.target.flatten()[index])
        loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
