"""The training loss is the loss of the output layer, summed over all targets."""

import dataclasses

import pytest
import torch

from onmt_entmax.model import ModelConfig, build_model
from onmt_entmax.sparse.functional import entmax_loss
from onmt_entmax.train.trainer import TrainingLoss
from tests.test_model import BATCH, CONFIGS, VOCABULARIES

PAD = VOCABULARIES.target.pad


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_it_is_the_loss_of_real_targets(config: ModelConfig, alpha: float) -> None:
    torch.manual_seed(0)
    changed = dataclasses.replace(config, dropout=0.4, generator_alpha=alpha)
    model = build_model(changed, VOCABULARIES).train()
    torch.manual_seed(5)
    found = TrainingLoss(model, 0.0, PAD)(BATCH)
    torch.manual_seed(5)
    hidden, target = model.hidden_states(BATCH)
    scores, target = model.generator.scores(hidden)[target != PAD], target[target != PAD]
    torch.testing.assert_close(found.loss, entmax_loss(scores, target, alpha, reduction="sum"))
    assert found.tokens == len(target)
