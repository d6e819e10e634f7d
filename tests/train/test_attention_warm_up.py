"""Warm-up of attention: in updates, alpha rises from 1 (softmax); validations have the full one."""

from pathlib import Path
from typing import NamedTuple

import pytest
from torch import nn

from onmt_entmax.train.trainer import Trainer
from tests.train.changed_trainers import after_each_update
from tests.train.trainers import LEARNED_ALPHAS, trainer_of

WARM_UP = {"attention_warmup_steps": 20, "train_steps": 24, "valid_steps": 4}

# Alpha of sparsemax attention in each of the 24 updates: 1 + n / 20 after n updates, but softmax
# in place of an alpha below 1.1, and at most 2.
RISING = [1.0, 1.0, *(1 + n / 20 for n in range(2, 20)), 2.0, 2.0, 2.0, 2.0]
# In each of the 24 / 4 validations.
FULL = [2.0] * 6


class Alphas(NamedTuple):
    """A layer's alpha in each update and in each validation."""

    training: list[float]
    validation: list[float]


def alphas_of(run: Trainer, attention: nn.Module) -> Alphas:
    """Train; return the alphas of one attention layer of the model."""
    alphas = Alphas([], [])

    def evaluate(_: object) -> dict[str, float]:
        alphas.validation.append(attention.alpha)
        return {"loss": 1.0}

    after_each_update(run, lambda: alphas.training.append(attention.alpha))
    run.validation.evaluate = evaluate
    run.train()
    return alphas


def test_recurrent_attention_begins_as_softmax_and_is_measured_sparse(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, global_attention_function="sparsemax", **WARM_UP)
    alphas = alphas_of(run, run.model.decoder.attn)
    assert alphas.training == pytest.approx(RISING)
    assert alphas.validation == FULL


def test_attention_of_a_transformer_begins_as_softmax_and_is_measured_sparse(
    tmp_path: Path,
) -> None:
    """Learned alphas, here those of the decoder, do not rise."""
    changes = {**LEARNED_ALPHAS, "encoder_attention_function": "sparsemax"}
    run = trainer_of(tmp_path, **changes, **WARM_UP)
    alphas = alphas_of(run, run.model.encoder.transformer[0].self_attn)
    assert alphas.training == pytest.approx(RISING)
    assert alphas.validation == FULL
    learned = run.model.decoder.transformer_layers[0].self_attn
    assert learned.alpha is None  # it is computed from a weight
