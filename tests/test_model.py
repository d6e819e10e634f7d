"""Models of every architecture, the `CONFIGS` of `tests.models`: gradients, losses and dropout."""

import dataclasses
from itertools import cycle

import pytest
import torch
from torch import nn

from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.nn.output import OutputLoss
from onmt_entmax.sparse import entmax_loss
from tests.models import BATCH, CONFIGS, VOCABULARIES

PAD = VOCABULARIES.target.pad

each_config = pytest.mark.parametrize("name", CONFIGS)


def loss_of(model: SparseNMTModel) -> OutputLoss:
    """Return the loss of the batch."""
    hidden, targets = model.hidden_states(BATCH)
    return model.generator.loss(hidden, targets, PAD)


# --- training --------------------------------------------------------------------------------


@each_config
def test_every_weight_has_a_gradient(name: str) -> None:
    model = build_model(CONFIGS[name], VOCABULARIES)
    loss_of(model).loss.backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


@each_config
def test_updates_lower_the_loss(name: str) -> None:
    model = build_model(CONFIGS[name], VOCABULARIES)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    before = float(loss_of(model).loss.detach())
    for _ in range(12):
        optimizer.zero_grad()
        loss_of(model).loss.backward()
        optimizer.step()
    assert float(loss_of(model).loss.detach()) < 0.8 * before


# --- the loss --------------------------------------------------------------------------------


@each_config
def test_a_loss_counts_target_tokens_and_end_symbols(name: str) -> None:
    """Padding does not count, for which some architectures compute hidden states, too."""
    words, ends = 2 + 1 + 4, 3  # of the three targets of `BATCH`
    assert loss_of(build_model(CONFIGS[name], VOCABULARIES)).tokens == words + ends


# Each architecture with one alpha of the output, which does not depend on the architecture.
@pytest.mark.parametrize(("name", "alpha"), zip(CONFIGS, cycle([1.0, 1.5, 2.0])))
def test_a_loss_is_the_sum_over_targets_without_padding(name: str, alpha: float) -> None:
    config = dataclasses.replace(CONFIGS[name], generator_alpha=alpha)
    model = build_model(config, VOCABULARIES).eval()
    hidden, targets = model.hidden_states(BATCH)
    is_token = targets != PAD
    scores = model.generator.scores(hidden)[is_token]
    expected = entmax_loss(scores, targets[is_token], alpha, reduction="sum")
    torch.testing.assert_close(loss_of(model).loss, expected)


# --- dropout ---------------------------------------------------------------------------------


def dropouts(model: nn.Module) -> list[float]:
    """Return the dropout probability of each layer that has one."""
    probabilities = []
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            probabilities.append(module.p)
        elif isinstance(module, nn.RNNBase) and module.num_layers > 1:
            probabilities.append(module.dropout)
    return probabilities


def model_with_dropout(name: str, dropout: float, attention_dropout: float) -> SparseNMTModel:
    config = dataclasses.replace(
        CONFIGS[name], dropout=dropout, attention_dropout=attention_dropout
    )
    return build_model(config, VOCABULARIES)


@each_config
def test_layers_have_the_dropout_of_the_configuration(name: str) -> None:
    """Attention has its own, 0.7; some architectures have none there."""
    assert {0.6} <= {*dropouts(model_with_dropout(name, 0.6, 0.7))} <= {0.6, 0.7}


@each_config
def test_a_changed_dropout_is_that_of_a_model_built_with_it(name: str) -> None:
    model = model_with_dropout(name, 0.2, 0.3)
    model.update_dropout(0.6, 0.7)
    assert dropouts(model) == dropouts(model_with_dropout(name, 0.6, 0.7))
