"""Entmax attention in small random models of Hugging Face `transformers`, without a download.

Functions import `transformers`, which takes seconds: each worker of pytest imports this file.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

PAD, BOS, EOS = 0, 1, 2
VOCABULARY, LAYERS, HEADS = 30, 2, 4
TOKENS, SHORTER = 9, 6  # of the two sentences of a batch

MakeModel = Callable[[str], Any]
"""Returns a small random model with the attention of a name, such as `entmax`."""
Alpha = float | Literal["learned"]


def bert(name: str) -> Any:
    """Return a small masked language model."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=48, pad_token_id=PAD, attn_implementation=name,
    )  # fmt: skip
    return BertForMaskedLM(config)


def gpt(name: str) -> Any:
    """Return a small causal language model."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=LAYERS, n_head=HEADS, n_positions=64,
        bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD, attn_implementation=name,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def llama(name: str) -> Any:
    """Return a small causal language model with fewer heads of keys than of queries."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=2, intermediate_size=48, bos_token_id=BOS, eos_token_id=EOS,
        pad_token_id=PAD, attn_implementation=name,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def build(make: MakeModel, alpha: Alpha) -> Any:
    """Return a model with entmax of a fixed alpha, or of one that each head learns."""
    from onmt_entmax import huggingface

    torch.manual_seed(0)
    if alpha != "learned":
        huggingface.register(alpha=alpha)
        return make("entmax")
    huggingface.register(alpha=lambda module: 1 + module.alpha_logits.sigmoid())
    model = make("entmax")
    for module in model.modules():
        # BERT's "BertAttention" holds the module that attends, a "BertSelfAttention", as `self`.
        if type(module).__name__.endswith("Attention") and not hasattr(module, "self"):
            module.alpha_logits = nn.Parameter(torch.randn(HEADS))
    return model


def batch() -> tuple[Tensor, Tensor]:
    """Return tokens ``(2, TOKENS)`` and their mask; the second sentence is padded."""
    torch.manual_seed(1)
    tokens = torch.randint(EOS + 1, VOCABULARY, (2, TOKENS))
    tokens[1, SHORTER:] = PAD
    return tokens, (tokens != PAD).long()


@pytest.mark.parametrize(("make", "alpha"), [(bert, 1.5), (gpt, "learned"), (llama, "learned")])
def test_a_model_with_entmax_trains(make: MakeModel, alpha: Alpha) -> None:
    model = build(make, alpha).train()
    tokens, mask = batch()
    labels = tokens.masked_fill(mask == 0, -100)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]  # it learns the two sentences by heart


@pytest.mark.parametrize("make", [gpt, llama])
def test_learned_alphas_have_gradients(make: MakeModel) -> None:
    model = build(make, "learned").train()
    tokens, mask = batch()
    model(input_ids=tokens, attention_mask=mask, labels=tokens).loss.backward()
    alphas = [p for name, p in model.named_parameters() if name.endswith("alpha_logits")]
    assert len(alphas) == LAYERS
    assert all((parameter.grad != 0).any() for parameter in alphas)


@pytest.mark.parametrize("make", [bert, gpt, llama])
@pytest.mark.parametrize("training", [False, True])
def test_entmax_of_alpha_1_equals_the_models_own_softmax(make: MakeModel, training: bool) -> None:
    ours = build(make, 1.0).train(training)
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
    """Programs such as bertviz read them: a tensor of each layer (batch, heads, queries, keys)."""

    @pytest.fixture
    def layers(self, make: MakeModel, alpha: Alpha) -> tuple[Tensor, ...]:
        """The weights of each layer for `batch`."""
        model = build(make, alpha).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "alpha" not in name:
                    parameter.mul_(6)  # new weights are so small that all keys would have weight
        tokens, mask = batch()
        return model(input_ids=tokens, attention_mask=mask, output_attentions=True).attentions

    def test_have_the_shape_that_programs_expect(self, layers: tuple[Tensor, ...]) -> None:
        shape = (2, HEADS, TOKENS, TOKENS)
        assert [weights.shape for weights in layers] == [shape] * LAYERS

    def test_sum_to_1(self, layers: tuple[Tensor, ...]) -> None:
        for weights in layers:
            of_tokens = weights[:, :, :SHORTER]  # queries that are not padding
            torch.testing.assert_close(of_tokens.sum(-1), torch.ones(2, HEADS, SHORTER))

    def test_are_0_at_padding(self, layers: tuple[Tensor, ...]) -> None:
        for weights in layers:
            assert (weights[1, :, :SHORTER, SHORTER:] == 0).all()

    def test_are_sparse(self, layers: tuple[Tensor, ...]) -> None:
        attendable = torch.ones(TOKENS, TOKENS).tril().bool()  # a causal model sees no later key
        for weights in layers:
            assert (weights[0, :, attendable] == 0).any()


@pytest.mark.parametrize(("make", "alpha"), [(gpt, 1.5), (llama, "learned")])
def test_a_model_generates_with_its_cache_as_without(make: MakeModel, alpha: Alpha) -> None:
    model = build(make, alpha).eval()
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


@torch.no_grad()
def logits_of(model: Any) -> Tensor:
    tokens, mask = batch()
    return model.eval()(input_ids=tokens, attention_mask=mask).logits


@pytest.mark.parametrize("make", [bert, gpt, llama])
class TestAModelThatHasRun:
    """Transformers saves no attention, and takes softmax by itself."""

    @pytest.fixture
    def model(self, make: MakeModel, tmp_path: Path) -> Any:
        """A model with entmax that has run, and is saved."""
        model = build(make, 1.5)
        logits_of(model)
        model.save_pretrained(tmp_path)
        return model

    def test_is_loaded_with_entmax(self, model: Any, tmp_path: Path) -> None:
        loaded = type(model).from_pretrained(tmp_path)
        assert torch.equal(logits_of(loaded), logits_of(model))
        assert loaded.config._attn_implementation == "entmax"

    def test_is_loaded_with_softmax_by_name(self, model: Any, tmp_path: Path) -> None:
        softmax = type(model).from_pretrained(tmp_path, attn_implementation="sdpa")
        assert not torch.allclose(logits_of(softmax), logits_of(model))

    def test_is_saved_without_entmax_after_softmax(self, model: Any, tmp_path: Path) -> None:
        softmax = type(model).from_pretrained(tmp_path, attn_implementation="sdpa")
        softmax.save_pretrained(tmp_path)
        assert "attn_implementation" not in json.loads((tmp_path / "config.json").read_text())


def test_a_name_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    model = build(gpt, 1.5)
    model(input_ids=batch()[0])
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    assert config["attn_implementation"] == "entmax"
    path.write_text(json.dumps(config | {"attn_implementation": "entmax of another program"}))
    with pytest.raises(ValueError, match="entmax of another program"):
        type(model).from_pretrained(tmp_path)


def test_a_model_that_has_not_run_is_loaded_with_entmax_by_name(tmp_path: Path) -> None:
    model = build(gpt, 1.5).eval()
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, attn_implementation="entmax")
    assert torch.equal(logits_of(loaded), logits_of(model))
