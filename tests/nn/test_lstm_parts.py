"""Parts of the fast LSTMs, each against its definition."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from onmt_entmax.nn.lstm.cells import (
    Repeats,
    Steps,
    dropout_mask,
    embed,
    lstm_cell,
    lstm_cell_backward,
)
from onmt_entmax.opennmt import Embeddings


def test_lstm_cell_equals_torchs() -> None:
    torch.manual_seed(0)
    reference = nn.LSTMCell(4, 3).double()
    x, hidden, cell = (torch.randn(5, n, dtype=torch.float64) for n in (4, 3, 3))
    cell.requires_grad_()
    plain = nn.functional.linear(x, reference.weight_ih, reference.bias_ih)
    plain = plain + nn.functional.linear(hidden, reference.weight_hh, reference.bias_hh)
    gates = plain.detach().clone()
    gates[:, 6:9] *= 2
    expected_hidden, expected_cell = reference(x, (hidden, cell))
    with torch.no_grad():
        new_hidden, new_cell, trace = lstm_cell(gates, cell)
    assert torch.allclose(new_hidden, expected_hidden)
    assert torch.allclose(new_cell, expected_cell)
    grad_hidden, grad_cell = torch.randn_like(hidden), torch.randn_like(hidden)
    loss = (expected_hidden * grad_hidden).sum() + (expected_cell * grad_cell).sum()
    d_cell, d_bias = torch.autograd.grad(loss, (cell, reference.bias_ih))
    grad_gates = torch.empty_like(gates)
    with torch.no_grad():
        lstm_cell_backward(grad_hidden, grad_cell, trace, grad_gates)
    grad_gates[:, 6:9] *= 2
    assert torch.allclose(grad_cell, d_cell)
    assert torch.allclose(grad_gates.sum(dim=0), d_bias)


def test_dropout_mask_has_the_right_rate_and_mean() -> None:
    torch.manual_seed(0)
    like = torch.empty(0)
    mask = dropout_mask((200, 1001), 0.3, like)
    assert mask is not None
    assert mask.shape == (200, 1001)
    assert abs(float((mask == 0).float().mean()) - 0.3) < 0.005
    assert abs(float(mask.mean()) - 1) < 0.01
    assert len(mask.unique()) == 2
    assert dropout_mask((3, 2), 0.0, like) is None
    everything = dropout_mask((3, 2), 1.0, like)
    assert everything is not None
    assert bool((everything == 0).all())


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_steps(lengths: list[int]) -> None:
    lengths.sort(reverse=True)
    steps = Steps.of(lengths)
    assert steps.total == sum(lengths)
    assert len(steps.sizes) == lengths[0]
    order = torch.arange(len(lengths)).flip(0)
    if steps.total:
        rows = {(int(at) // len(lengths), int(at) % len(lengths)) for at in steps.index(order)}
        columns = enumerate(reversed(lengths))
        assert rows == {(t, b) for b, length in columns for t in range(length)}
        packed = torch.arange(1.0, steps.total + 1).unsqueeze(1)
        padded = steps.padded(packed)
        assert torch.equal(padded[padded != 0], packed.squeeze(1))


# --- Distinct tokens ----------------------------------------------------------------------------


@pytest.mark.parametrize("places", [[3, 0, 0, 2, 3, 3], [4, 3, 2, 1, 0], [0]])
def test_collecting_is_the_transpose_of_spreading(places: list[int]) -> None:
    repeats = Repeats(5, torch.tensor(places))  # with rows that no position takes
    matrix = repeats.spread(torch.eye(5, dtype=torch.float64))
    assert matrix.argmax(1).tolist() == places
    packed = torch.randn(len(places), 7, dtype=torch.float64)
    assert torch.allclose(repeats.collect(packed), matrix.t() @ packed)


def test_without_repeats_nothing_is_copied() -> None:
    rows = torch.randn(4, 3)
    assert Repeats(4).spread(rows) is rows
    assert torch.equal(Repeats(4).collect(rows), rows)


def test_each_token_is_looked_up_once() -> None:
    embeddings = Embeddings(6, 20, 1)
    tokens = torch.tensor([[7], [3], [7], [7], [19], [3]])
    rows, repeats = embed(embeddings, tokens)
    assert len(rows) == repeats.rows == 3
    assert repeats.spread(rows).equal(embeddings(tokens.unsqueeze(0))[0])


def test_embeddings_of_more_than_the_token_are_looked_up_at_every_position() -> None:
    places = Embeddings(6, 20, 1, position_encoding=True)
    features = Embeddings(6, 20, 1, feat_padding_idx=[1], feat_vocab_sizes=[9])
    for embeddings, tokens in (
        (places, torch.tensor([[7], [7]])),
        (features, torch.tensor([[7, 2], [7, 3]])),
    ):
        rows, repeats = embed(embeddings, tokens)
        assert repeats == Repeats(2)
        assert rows.equal(embeddings(tokens.unsqueeze(0))[0])
