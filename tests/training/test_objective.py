"""What training makes small: the loss of the output layer, and R-Drop's on top of it."""

import dataclasses
from pathlib import Path

import pytest
import torch

from onmt_entmax.experiment import train
from onmt_entmax.losses import entmax_loss
from onmt_entmax.model import ModelConfig, SparseNMTModel, build_model
from onmt_entmax.modules.output_divergence import divergence
from onmt_entmax.training import OptimizerConfig, TrainingConfig
from onmt_entmax.training.objective import Objective
from tests.commands import weights
from tests.test_model import BATCH, CONFIGS, VOCABULARIES
from tests.toy import write_config

PAD = VOCABULARIES.target.pad


def network(config: ModelConfig, dropout: float, alpha: float = 1.5) -> SparseNMTModel:
    torch.manual_seed(0)
    changed = dataclasses.replace(
        config, dropout=dropout, attention_dropout=dropout, generator_alpha=alpha
    )
    return build_model(changed, VOCABULARIES).train()


def objective_of(model: SparseNMTModel, **changes: object) -> Objective:
    return Objective(model, TrainingConfig(OptimizerConfig(), **changes), PAD)


def test_a_batch_twice_has_each_column_beside_its_copy() -> None:
    twice = BATCH.twice()
    for name in ("source", "target"):
        one, both = getattr(BATCH, name), getattr(twice, name)
        assert both[:, ::2].equal(one)
        assert both[:, 1::2].equal(one)
    for name in ("source_lengths", "target_lengths"):
        one, both = getattr(BATCH, name), getattr(twice, name)
        assert both[::2].equal(one)
        assert both[1::2].equal(one)
    assert twice.indices == (0, 0, 1, 1, 2, 2)
    assert dataclasses.replace(BATCH, target=None, target_lengths=None).twice().target is None


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_without_dropout_it_is_the_plain_loss(config: ModelConfig) -> None:
    model = network(config, 0.0)
    plain, double = objective_of(model)(BATCH), objective_of(model, rdrop=3.0)(BATCH)
    for one, other in zip(plain, double, strict=True):
        torch.testing.assert_close(one.float(), other.float(), atol=1e-5, rtol=1e-5)
    expected = torch.autograd.grad(plain.loss, list(model.parameters()))
    found = torch.autograd.grad(double.loss, list(model.parameters()))
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_two_draws_of_dropout_and_what_is_between_them(config: ModelConfig, alpha: float) -> None:
    model = network(config, 0.4, alpha)
    torch.manual_seed(5)
    found = objective_of(model, rdrop=2.0)(BATCH)
    torch.manual_seed(5)
    hidden, target = model.hidden_states(BATCH.twice())
    scores = model.generator.scores(hidden)[target != PAD]
    target = target[target != PAD]
    assert target[::2].equal(target[1::2])
    one, other = scores[::2], scores[1::2]
    assert not torch.allclose(one, other)
    losses = [entmax_loss(z, target[::2], alpha, reduction="sum") for z in (one, other)]
    expected = sum(losses) / 2 + 2.0 / 4 * divergence(one, other, alpha).sum()
    torch.testing.assert_close(found.loss, expected)
    assert found.tokens == len(one)


def test_training_with_it_is_another_and_resumes_exactly(tmp_path: Path) -> None:
    path = write_config(tmp_path, train_steps=4, save_checkpoint_steps=2, valid_steps=100)
    given = ["-config", str(path), "-save_model"]
    assert train([*given, str(tmp_path / "plain")]) == 0
    assert train([*given, str(tmp_path / "run"), "-rdrop", "5"]) == 0
    found = weights(tmp_path / "run", 4)
    assert not found["generator.bias"].equal(weights(tmp_path / "plain", 4)["generator.bias"])
    again = [*given, str(tmp_path / "again"), "-rdrop", "5"]
    assert train([*again, "-train_from", str(tmp_path / "run" / "step_2")]) == 0
    continued = weights(tmp_path / "again", 4)
    assert all(continued[name].equal(tensor) for name, tensor in found.items())
