"""Consistency under dropout: the loss of copies, and updates with each pair twice."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from onmt_entmax.config import ModelConfig
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse import entmax
from onmt_entmax.train.consistency import loss_of_copies, twice
from tests.train.updates import (
    RECURRENT,
    SENTENCES,
    TRANSFORMER,
    WORDS,
    batch_of,
    model_of,
    update_of,
)

ALPHAS = (1.0, 1.5, 2.0)
WEIGHT = 3.0  # of the loss of copies
ALL = torch.ones(4, dtype=torch.bool)


def output_layer(alpha: float) -> OutputLayer:
    """Return a layer with random weights, from states of 3 to scores of 7 tokens."""
    torch.manual_seed(0)
    layer = OutputLayer(3, 7, alpha).double()
    torch.nn.init.normal_(layer.weight, std=2.0)
    return layer


def states() -> Tensor:
    """Return random states ``(4, 3)``: two pairs of copies."""
    return torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_copies_are_neighbours() -> None:
    batch = batch_of(0)
    both = twice(batch)
    assert both.target is not None
    assert batch.target is not None
    for copy in (0, 1):
        assert both.source[:, copy::2].equal(batch.source)
        assert both.target[:, copy::2].equal(batch.target)
        assert both.indices[copy::2] == batch.indices


class TestLossOfCopies:
    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_has_the_difference_of_probabilities_as_gradient(self, alpha: float) -> None:
        layer, hidden = output_layer(alpha), states().requires_grad_()
        (gradient,) = torch.autograd.grad(loss_of_copies(layer, hidden, ALL), hidden)
        probabilities = entmax(layer.scores(hidden), alpha).detach()
        difference = probabilities - probabilities[[1, 0, 3, 2]]
        assert difference.abs().sum() > 1  # or nothing is tested
        torch.testing.assert_close(gradient, difference @ layer.weight)

    def test_is_cross_entropy_at_alpha_1(self) -> None:
        layer, hidden = output_layer(1.0), states()
        scores = layer.scores(hidden)
        expected = cross_entropy(scores, scores.softmax(1)[[1, 0, 3, 2]], reduction="sum")
        torch.testing.assert_close(loss_of_copies(layer, hidden, ALL), expected)

    def test_is_without_rows_that_do_not_count(self) -> None:
        layer, hidden = output_layer(1.5), states()
        counted = torch.tensor([True, True, False, False])
        some = loss_of_copies(layer, hidden, counted)
        assert some > 0
        torch.testing.assert_close(some, loss_of_copies(layer, hidden[:2], ALL[:2]))

    def test_has_no_gradient_in_rows_that_do_not_count(self) -> None:
        layer, hidden = output_layer(1.5), states()
        hidden[2:] = torch.nan  # as padding may have it
        hidden.requires_grad_()
        counted = torch.tensor([True, True, False, False])
        (gradient,) = torch.autograd.grad(loss_of_copies(layer, hidden, counted), hidden)
        assert gradient[:2].all()
        assert not gradient[2:].any()


def gradients(config: ModelConfig, padded: bool, dropout: float, weight: float) -> list[Tensor]:
    """Return the gradients of an update with this weight of the loss of copies."""
    model = model_of(config, dropout)
    update = update_of(model, padded=padded, consistency=weight)
    torch.manual_seed(2)
    update.add(batch_of(0), SENTENCES)
    return [weight.grad.clone() for weight in update.parameters if weight.grad is not None]


CONFIGS = pytest.mark.parametrize(
    "config", [RECURRENT, TRANSFORMER], ids=["recurrent", "transformer"]
)


@pytest.mark.parametrize("padded", [True, False], ids=["padded", "not padded"])
@CONFIGS
def test_an_update_without_dropout_is_a_plain_one(config: ModelConfig, padded: bool) -> None:
    """Then copies have equal outputs, and their loss has its minimum."""
    plain = gradients(config, padded, dropout=0.0, weight=0.0)
    consistent = gradients(config, padded, dropout=0.0, weight=WEIGHT)
    assert len(plain) > 3
    torch.testing.assert_close(consistent, plain)


@pytest.mark.parametrize("padded", [True, False], ids=["padded", "not padded"])
@CONFIGS
def test_an_update_depends_on_the_loss_of_copies(config: ModelConfig, padded: bool) -> None:
    light, heavy = (gradients(config, padded, dropout=0.5, weight=weight) for weight in (1e-9, 1.0))
    assert any(not torch.allclose(*pair) for pair in zip(light, heavy, strict=True))


@CONFIGS
def test_an_update_has_the_gradient_of_both_losses(config: ModelConfig) -> None:
    """The reference writes down the gradient in the scores of the whole batch."""
    model = model_of(config, dropout=0.5)
    torch.manual_seed(2)
    hidden, target = model.hidden_states(twice(batch_of(0)))
    scores, counted = model.generator.scores(hidden), target != WORDS.pad
    probabilities = entmax(scores, 1.5).detach()
    of_copies = probabilities.view(-1, 2, len(WORDS)).flip(1).flatten(0, 1)
    difference = probabilities - of_copies
    assert difference[counted].abs().sum() > 1  # or nothing is tested
    in_scores = probabilities - one_hot(target, len(WORDS)) + WEIGHT * difference
    layer = model.generator
    expected = torch.autograd.grad(
        scores[counted], [layer.weight, layer.bias], in_scores[counted] / (2 * SENTENCES)
    )
    trained = model_of(config, dropout=0.5)
    torch.manual_seed(2)
    update_of(trained, padded=False, consistency=WEIGHT).add(batch_of(0), SENTENCES)
    updated = trained.generator
    torch.testing.assert_close((updated.weight.grad, updated.bias.grad), expected)
