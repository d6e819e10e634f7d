"""Attention weights of all heads for sentence pairs."""

from pathlib import Path

import numpy as np
import pytest

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.config import ATTENTION_KINDS
from onmt_entmax.nn.transformer import attentions
from tests.papers.head_models import ALPHAS, SOURCES, TARGETS, VOCABULARIES, write_heads
from tools.papers.forced_steps import Pair
from tools.papers.head_attention import Floats, attend

LAYERS = HEADS = 2  # of `write_heads`
PAIRS = [
    Pair(source.split(), VOCABULARIES.target.encode(target.split()))
    for source, target in zip(SOURCES, TARGETS, strict=True)
]
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=[" ".join(pair.source) for pair in PAIRS])
each_kind = pytest.mark.parametrize("kind", ATTENTION_KINDS)


@pytest.fixture(params=ALPHAS.values(), ids=ALPHAS)
def loaded(request: pytest.FixtureRequest, tmp_path: Path) -> LoadedModel:
    write_heads(tmp_path / "model", request.param)
    return load(tmp_path / "model")


def attend_alone(loaded: LoadedModel, pair: Pair) -> dict[str, Floats]:
    """Return the weights of a pair by kind of attention; it has a batch of its own."""
    ((_, weights),) = attend(loaded, [pair])
    return weights


def test_every_pair_of_a_batch_has_weights(loaded: LoadedModel) -> None:
    together = dict(attend(loaded, PAIRS, batch_size=len(PAIRS)))
    assert together.keys() == {*range(len(PAIRS))}


@each_kind
def test_weights_of_a_batch_are_those_of_each_pair_alone(loaded: LoadedModel, kind: str) -> None:
    together = dict(attend(loaded, PAIRS, batch_size=len(PAIRS)))
    for index, pair in enumerate(PAIRS):
        alone = attend_alone(loaded, pair)
        np.testing.assert_allclose(together[index][kind], alone[kind], atol=1e-6)


@each_pair
def test_weights_are_by_layer_head_query_and_key(loaded: LoadedModel, pair: Pair) -> None:
    """Queries of the decoder and of the context are the target's tokens and its start symbol."""
    source, target = len(pair.source), len(pair.target) + 1
    shapes = {kind: weights.shape for kind, weights in attend_alone(loaded, pair).items()}
    assert shapes == {
        "encoder": (LAYERS, HEADS, source, source),
        "decoder": (LAYERS, HEADS, target, target),
        "context": (LAYERS, HEADS, target, source),
    }


@each_kind
@each_pair
def test_weights_of_a_query_sum_to_one(loaded: LoadedModel, pair: Pair, kind: str) -> None:
    weights = attend_alone(loaded, pair)[kind]
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_the_decoder_attends_to_no_later_token(loaded: LoadedModel) -> None:
    *_, longest = PAIRS
    weights = attend_alone(loaded, longest)["decoder"]
    later = np.triu(np.ones(weights.shape[-2:], dtype=bool), k=1)
    assert later.any()
    assert not weights[..., later].any()


@each_kind
def test_no_hook_is_left_in_the_model(loaded: LoadedModel, kind: str) -> None:
    list(attend(loaded, PAIRS))
    hooks = [layer._forward_hooks for layer in attentions(loaded.model)[kind]]
    assert hooks == [{}] * LAYERS
