"""Entmax attention in small random models of Hugging Face `transformers`, without a download."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.huggingface_models import (
    HEADS,
    LAYERS,
    SHORTER,
    TOKENS,
    Alpha,
    MakeModel,
    batch,
    bert,
    gpt,
    llama,
    register_and_build,
)  # fmt: skip


@pytest.mark.parametrize(("make", "alpha"), [(bert, 1.5), (gpt, "learned"), (llama, "learned")])
def test_a_model_with_entmax_trains(make: MakeModel, alpha: Alpha) -> None:
    model = register_and_build(make, alpha).train()
    tokens, mask = batch()
    labels = tokens.masked_fill(mask == 0, -100)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]  # two sentences are learned by heart


@pytest.mark.parametrize("make", [gpt, llama])
def test_learned_alphas_have_gradients(make: MakeModel) -> None:
    model = register_and_build(make, "learned").train()
    tokens, mask = batch()
    model(input_ids=tokens, attention_mask=mask, labels=tokens).loss.backward()
    alphas = [p for name, p in model.named_parameters() if name.endswith("alpha_logits")]
    assert len(alphas) == LAYERS
    assert all((parameter.grad != 0).any() for parameter in alphas)


@pytest.mark.parametrize("make", [bert, gpt, llama])
@pytest.mark.parametrize("training", [False, True])
def test_entmax_of_alpha_1_equals_the_models_own_softmax(make: MakeModel, training: bool) -> None:
    ours = register_and_build(make, 1.0).train(training)
    theirs = make("eager").eval()
    theirs.load_state_dict(ours.state_dict())
    for module in ours.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    tokens, mask = batch()
    logits, expected = (
        model(input_ids=tokens, attention_mask=mask).logits[mask.bool()] for model in (ours, theirs)
    )
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("make", "alpha"), [(bert, "learned"), (gpt, 1.5)])
class TestReturnedAttentionWeights:
    """Programs such as bertviz read them: for each layer, ``(batch, heads, queries, keys)``."""

    @pytest.fixture
    def layers(self, make: MakeModel, alpha: Alpha) -> tuple[Tensor, ...]:
        """The weights of each layer for `batch`."""
        model = register_and_build(make, alpha).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "alpha" not in name:
                    parameter.mul_(6)  # initial ones are so small that no key would have weight 0
        tokens, mask = batch()
        return model(input_ids=tokens, attention_mask=mask, output_attentions=True).attentions

    def test_have_the_shape_that_programs_expect(self, layers: tuple[Tensor, ...]) -> None:
        shape = (2, HEADS, TOKENS, TOKENS)
        assert [weights.shape for weights in layers] == [shape] * LAYERS

    def test_sum_to_1(self, layers: tuple[Tensor, ...]) -> None:
        for weights in layers:
            sums = weights[:, :, :SHORTER].sum(-1)  # of queries that are not padding
            torch.testing.assert_close(sums, torch.ones(2, HEADS, SHORTER))

    def test_are_0_at_padding(self, layers: tuple[Tensor, ...]) -> None:
        for weights in layers:
            assert (weights[1, :, :SHORTER, SHORTER:] == 0).all()

    def test_are_sparse(self, layers: tuple[Tensor, ...]) -> None:
        attendable = torch.ones(TOKENS, TOKENS).tril().bool()  # a causal model sees no later key
        for weights in layers:
            assert (weights[0, :, attendable] == 0).any()


@pytest.mark.parametrize(("make", "alpha"), [(gpt, 1.5), (llama, "learned")])
def test_a_model_generates_with_its_cache_as_without(make: MakeModel, alpha: Alpha) -> None:
    model = register_and_build(make, alpha).eval()
    tokens = batch()[0][:1]
    options: dict[str, Any] = {"max_new_tokens": 8, "do_sample": False, "num_beams": 2}
    mask = torch.ones_like(tokens)
    cached = model.generate(tokens, attention_mask=mask, use_cache=True, **options)
    plain = model.generate(tokens, attention_mask=mask, use_cache=False, **options)
    assert torch.equal(cached, plain)
    assert cached.shape[1] > TOKENS


def test_an_alpha_below_1_is_refused() -> None:
    from onmt_entmax import huggingface

    with pytest.raises(ValueError, match="alpha must be a number from 1"):
        huggingface.register(alpha=0.5)


def test_an_argument_that_entmax_does_not_have_is_refused() -> None:
    from transformers import AttentionInterface

    from onmt_entmax import huggingface

    huggingface.register()
    attend = AttentionInterface()["entmax"]
    tensors = [torch.randn(1, 2, 3, 4) for _ in range(3)]
    with pytest.raises(ValueError, match="does not support softcap"):
        attend(nn.Module(), *tensors, None, softcap=30.0)
