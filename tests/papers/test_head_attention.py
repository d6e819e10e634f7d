"""Attention weights of all heads for sentence pairs."""

from pathlib import Path

import numpy as np
import pytest

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.config import ATTENTION_KINDS
from onmt_entmax.nn.transformer import attentions
from tests.papers.head_models import ALPHAS, SOURCES, TARGETS, VOCABULARIES, write_heads
from tools.papers.head_attention import attend

PAIRS = [
    (source.split(), VOCABULARIES.target.encode(target.split()))
    for source, target in zip(SOURCES, TARGETS, strict=True)
]


@pytest.fixture(params=ALPHAS.values(), ids=ALPHAS)
def loaded(request: pytest.FixtureRequest, tmp_path: Path) -> LoadedModel:
    write_heads(tmp_path / "model", request.param)
    return load(tmp_path / "model")


def test_weights_of_a_batch_are_those_of_each_sentence_alone(loaded: LoadedModel) -> None:
    together = dict(attend(loaded, PAIRS, 4))
    assert sorted(together) == [0, 1, 2, 3]
    for index, pair in enumerate(PAIRS):
        ((_, alone),) = attend(loaded, [pair])
        assert alone.keys() == {*ATTENTION_KINDS}
        for kind, weights in alone.items():
            np.testing.assert_allclose(together[index][kind], weights, atol=1e-6)


def test_weights_are_distributions_of_layers_heads_and_queries(loaded: LoadedModel) -> None:
    for source, target in PAIRS:
        steps = len(target) + 1
        sizes = {
            "encoder": (len(source), len(source)),
            "decoder": (steps, steps),
            "context": (steps, len(source)),
        }
        ((_, attention),) = attend(loaded, [(source, target)])
        assert attention.keys() == sizes.keys()
        for kind, weights in attention.items():
            assert weights.shape == (2, 2, *sizes[kind])
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_the_decoder_attends_to_no_later_token(loaded: LoadedModel) -> None:
    ((_, attention),) = attend(loaded, [PAIRS[-1]])
    later = np.triu(np.ones(attention["decoder"].shape[-2:], dtype=bool), k=1)
    assert later.any()
    assert not attention["decoder"][..., later].any()


def test_no_hook_is_left_in_the_model(loaded: LoadedModel) -> None:
    list(attend(loaded, PAIRS))
    hooks = {
        kind: [layer._forward_hooks for layer in layers]
        for kind, layers in attentions(loaded.model).items()
    }
    assert hooks == {kind: [{}, {}] for kind in ATTENTION_KINDS}
