"""The fast encoder against OpenNMT-py's own: values and every gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn.lstm.encoder import FastRNNEncoder
from onmt_entmax.opennmt import Embeddings, RNNEncoder
from tests.nn.test_lstm_decoder import (
    BATCH,
    EMBEDDING,
    HIDDEN,
    PAD,
    SOURCE,
    SOURCE_LENGTHS,
    TOLERANCE,
    VOCABULARY,
    assert_equal,
)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bridge", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", [SOURCE_LENGTHS, None], ids=["lengths", "full"])
def test_encoder_equals_opennmt(
    bidirectional: bool, layers: int, bridge: bool, dtype: torch.dtype, lengths: Tensor | None
) -> None:
    source = torch.randint(2, VOCABULARY, (SOURCE, BATCH, 1))
    results = []
    for kind in (RNNEncoder, FastRNNEncoder):
        torch.manual_seed(2)
        embeddings = Embeddings(EMBEDDING, VOCABULARY, PAD)
        encoder = kind("LSTM", bidirectional, layers, HIDDEN, 0.0, embeddings, bridge).to(dtype)
        (hidden, cell), bank, returned = encoder(source, lengths)
        assert returned is lengths
        tensors = {"bank": bank, "hidden": hidden, "cell": cell}
        torch.manual_seed(3)
        loss = sum((t * torch.randn(t.shape, dtype=dtype)).sum() for t in tensors.values())
        names, parameters = zip(*encoder.named_parameters(), strict=True)
        grads = torch.autograd.grad(loss, parameters)
        results.append({**tensors, **dict(zip(names, grads, strict=True))})
    assert_equal(results[1], results[0], TOLERANCE[dtype])


def test_encoder_dropout_between_layers_only() -> None:
    """With dropout 1, the upper layer has no input."""
    source = torch.randint(2, VOCABULARY, (SOURCE, BATCH, 1))
    arguments = ("LSTM", True, 2, HIDDEN, 1.0, Embeddings(EMBEDDING, VOCABULARY, PAD))
    encoder = FastRNNEncoder(*arguments)
    stock = RNNEncoder(*arguments)
    stock.load_state_dict(encoder.state_dict())
    for training in (True, False):
        (states, bank, _), (expected_states, expected, _) = (
            module.train(training)(source, SOURCE_LENGTHS) for module in (encoder, stock)
        )
        assert torch.allclose(bank, expected, atol=1e-6)
        # The lower layer has its input.
        for one, other in zip(states, expected_states, strict=True):
            assert torch.allclose(one, other, atol=1e-6)


def test_encoder_of_another_kind_runs_as_in_opennmt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onmt_entmax.nn.lstm.encoder._LSTMLayer", None)
    source = torch.randint(2, VOCABULARY, (SOURCE, BATCH, 1))
    arguments = ("GRU", True, 2, HIDDEN, 0.0, Embeddings(EMBEDDING, VOCABULARY, PAD))
    encoder, stock = FastRNNEncoder(*arguments), RNNEncoder(*arguments)
    stock.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder(source, SOURCE_LENGTHS)[1], stock(source, SOURCE_LENGTHS)[1])


def test_encoder_refuses_unsorted_batches() -> None:
    encoder = FastRNNEncoder("LSTM", True, 1, HIDDEN, 0.0, Embeddings(EMBEDDING, VOCABULARY, PAD))
    source = torch.randint(2, VOCABULARY, (SOURCE, BATCH, 1))
    with pytest.raises(ValueError, match="longest first"):
        encoder(source, SOURCE_LENGTHS.flip(0))
