"""Padding changes neither losses nor gradients of Transformers, nor what dropout drops."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.model import SparseNMTModel
from tests.nn.padding import SHAPES, gradients, packed_loss, padded, padded_loss
from tests.nn.small_models import TRANSFORMER, VOCABULARIES, batch_of, model_of

SMOOTHING = 0.1  # of the labels
VARIANTS: dict[str, dict[str, Any]] = {
    "learned alphas": {},
    "relative positions": {"max_relative_positions": 2, "position_encoding": False},
    "average attention, softmax, an alpha above 2": {
        "encoder_attention_alpha": 1.0,
        "context_attention_alpha": 2.5,
        "self_attn_type": "average",
        "decoder_attention_alpha": 1.0,
    },
    "tied weights and softmax": {"share_decoder_embeddings": True, "generator_alpha": 1.0},
}


@pytest.fixture(params=VARIANTS.values(), ids=list(VARIANTS))
def model(request: pytest.FixtureRequest) -> SparseNMTModel:
    return model_of(TRANSFORMER, **request.param)


class Losses(NamedTuple):
    """The loss of a batch that does not fill its shape: two of seven sentences are missing."""

    with_padding: Tensor
    without_padding: Tensor


@pytest.fixture
def losses(model: SparseNMTModel) -> Losses:
    batch = batch_of(SHAPES.batch_size - 2)
    return Losses(
        padded_loss(model, padded(batch), SMOOTHING), packed_loss(model, batch, SMOOTHING)
    )


def test_padding_changes_no_loss(losses: Losses) -> None:
    torch.testing.assert_close(losses.with_padding, losses.without_padding, rtol=1e-10, atol=1e-10)


def test_padding_changes_no_gradient(model: SparseNMTModel, losses: Losses) -> None:
    ours, expected = (gradients(loss, model) for loss in losses)
    assert ours.keys() == expected.keys()
    for name, gradient in expected.items():
        scale = float(gradient.abs().max()) + 1
        assert float((ours[name] - gradient).abs().max()) <= 1e-10 * scale, name


# --- dropout of a batch that fills its shape -------------------------------------------------

SEED = 3


@pytest.fixture
def model_with_dropout() -> SparseNMTModel:
    return model_of(TRANSFORMER, dropout=0.3, attention_dropout=0.2)


@pytest.fixture
def full_batch() -> Batch:
    """Sentences that fill a shape: 8 source tokens, and 3 target tokens with an end symbol."""
    examples = [Example([4 + n] * 8, [5 + n] * 3, n) for n in range(SHAPES.batch_size)]
    return make_batch(examples, VOCABULARIES)


@pytest.fixture
def loss_with_dropout(model_with_dropout: SparseNMTModel, full_batch: Batch) -> float:
    torch.manual_seed(SEED)
    return float(padded_loss(model_with_dropout, padded(full_batch)).detach())


def test_equal_seeds_drop_the_same_with_padding_and_without(
    model_with_dropout: SparseNMTModel, full_batch: Batch, loss_with_dropout: float
) -> None:
    torch.manual_seed(SEED)
    packed = float(packed_loss(model_with_dropout, full_batch).detach())
    assert packed == pytest.approx(loss_with_dropout, abs=1e-10)


def test_dropout_changes_the_loss(
    model_with_dropout: SparseNMTModel, full_batch: Batch, loss_with_dropout: float
) -> None:
    evaluated = float(padded_loss(model_with_dropout.eval(), padded(full_batch)).detach())
    assert abs(loss_with_dropout - evaluated) > 1e-3
