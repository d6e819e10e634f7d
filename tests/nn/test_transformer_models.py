"""Transformers with alpha-entmax: learned alphas of heads, and losses that no batch changes."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters
from onmt_entmax.nn.transformer import ATTENTION_KINDS, attentions, learned_alphas
from tests.models import LEARNED, TRANSFORMER, VOCABULARIES

PAD = VOCABULARIES.target.pad
# Every layer of the encoder or of the decoder has each kind of attention, with an alpha a head.
LAYERS, HEADS = TRANSFORMER.enc_layers, TRANSFORMER.heads
ALPHAS = len(ATTENTION_KINDS) * LAYERS * HEADS


@pytest.fixture(scope="module")
def fixed() -> SparseNMTModel:
    return build_model(TRANSFORMER, VOCABULARIES)


@pytest.fixture(scope="module")
def learned() -> SparseNMTModel:
    return build_model(LEARNED, VOCABULARIES)


@pytest.fixture(scope="module")
def shared() -> SparseNMTModel:
    """A model whose heads share one alpha in the attention to the source."""
    config = dataclasses.replace(TRANSFORMER, context_attention_alpha="learned_shared")
    return build_model(config, VOCABULARIES)


def test_each_head_has_a_learned_alpha(fixed: SparseNMTModel, learned: SparseNMTModel) -> None:
    assert count_parameters(learned) - count_parameters(fixed) == ALPHAS
    for alphas_of_layers in learned_alphas(learned).values():
        assert [len(alphas) for alphas in alphas_of_layers] == [HEADS] * LAYERS


def test_learned_alphas_begin_at_different_numbers_between_1_and_2(learned: SparseNMTModel) -> None:
    alphas = [
        alpha for layers in learned_alphas(learned).values() for heads in layers for alpha in heads
    ]
    assert len(set(alphas)) == ALPHAS
    assert all(1 < alpha < 2 for alpha in alphas)


def test_learned_alphas_are_in_all_kinds_of_attention(learned: SparseNMTModel) -> None:
    assert attentions(learned).keys() == set(ATTENTION_KINDS)
    assert learned_alphas(learned).keys() == set(ATTENTION_KINDS)


def test_a_model_of_fixed_alphas_has_no_learned_ones(fixed: SparseNMTModel) -> None:
    assert learned_alphas(fixed) == {}


def test_all_heads_of_a_kind_may_share_one_alpha(
    fixed: SparseNMTModel, shared: SparseNMTModel
) -> None:
    assert count_parameters(shared) - count_parameters(fixed) == 1
    alphas = learned_alphas(shared)
    assert alphas.keys() == {"context"}
    assert len({alpha for heads in alphas["context"] for alpha in heads}) == 1


def test_a_shared_alpha_is_shown_as_such(shared: SparseNMTModel) -> None:
    assert "shared" in repr(shared.decoder)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="uniform"),
        pytest.param({"param_init": 0.0}, id="as PyTorch does"),
        pytest.param({"param_init_glorot": True}, id="Glorot"),
    ],
)
def test_learned_alphas_are_drawn_last_and_change_no_other_weight(changes: dict[str, Any]) -> None:
    def weights_of(config: ModelConfig) -> dict[str, torch.Tensor]:
        torch.manual_seed(7)
        model = build_model(dataclasses.replace(config, **changes), VOCABULARIES)
        return dict(model.named_parameters())

    without_alphas, with_alphas = weights_of(TRANSFORMER), weights_of(LEARNED)
    others = {name for name in with_alphas if not name.endswith(".a")}
    assert others == set(without_alphas)
    for name in others:
        assert with_alphas[name].equal(without_alphas[name]), name


def test_equal_seeds_give_equal_alphas() -> None:
    models = []
    for _ in range(2):
        torch.manual_seed(7)
        models.append(build_model(LEARNED, VOCABULARIES))
    first, second = map(learned_alphas, models)
    assert first == second


def loss_of(model: SparseNMTModel, examples: Sequence[Example]) -> float:
    """Return the sum of the losses of a batch."""
    hidden, target = model.hidden_states(make_batch(examples, VOCABULARIES))
    return float(model.generator.loss(hidden, target, PAD).loss.detach())


@pytest.mark.parametrize("config", [TRANSFORMER, LEARNED], ids=["softmax", "learned"])
def test_the_loss_of_a_sentence_does_not_depend_on_its_batch(config: ModelConfig) -> None:
    torch.manual_seed(2)
    model = build_model(dataclasses.replace(config, param_init=0.5), VOCABULARIES).double()
    pairs = [([2, 3, 4, 7], [5, 6]), ([7], [4, 4, 5, 9, 8]), ([5, 2], [9])]
    examples = [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
    alone = sum(loss_of(model, [example]) for example in examples)
    for order in itertools.permutations(examples):
        assert loss_of(model, order) == pytest.approx(alone, abs=1e-9)
