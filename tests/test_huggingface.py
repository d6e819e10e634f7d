"""Entmax attention in small random models of Hugging Face `transformers`, without a download."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from onmt_entmax import huggingface

PAD = 0


def bert(name: str) -> Any:
    """Return a small masked language model."""
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, pad_token_id=PAD, attn_implementation=name,
    )  # fmt: skip
    return transformers.BertForMaskedLM(config)


def gpt(name: str) -> Any:
    """Return a small causal language model."""
    config = transformers.GPT2Config(
        vocab_size=30, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1,
        eos_token_id=2, pad_token_id=PAD, attn_implementation=name,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def llama(name: str) -> Any:
    """Return a small causal language model with fewer heads of keys than of queries."""
    config = transformers.LlamaConfig(
        vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=48, bos_token_id=1, eos_token_id=2,
        pad_token_id=PAD, attn_implementation=name,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def registered(make: Any, alpha: Any) -> Any:
    """Return a model with entmax of a fixed alpha, or of one that each head learns."""
    torch.manual_seed(0)
    if alpha != "learned":
        huggingface.register(alpha=alpha)
        return make("entmax")
    huggingface.register(alpha=lambda module: 1 + module.alpha_logits.sigmoid())
    model = make("entmax")
    for module in model.modules():
        if type(module).__name__.endswith("Attention") and not hasattr(module, "self"):
            module.alpha_logits = nn.Parameter(torch.randn(4))
    return model


def batch() -> tuple[Tensor, Tensor]:
    """Return tokens and their mask; the second sentence is padded."""
    torch.manual_seed(1)
    tokens = torch.randint(3, 30, (2, 9))
    tokens[1, 6:] = PAD
    return tokens, (tokens != PAD).long()


@pytest.mark.parametrize(("make", "alpha"), [(bert, 1.5), (gpt, "learned"), (llama, "learned")])
def test_it_trains(make: Any, alpha: Any) -> None:
    model = registered(make, alpha).train()
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
    assert losses[-1] < 0.7 * losses[0]
    learned = [p for name, p in model.named_parameters() if name.endswith("alpha_logits")]
    assert len(learned) == (2 if alpha == "learned" else 0)
    assert all((parameter.grad != 0).any() for parameter in learned)


@pytest.mark.parametrize("make", [bert, gpt, llama])
def test_softmax_equals_the_model_s_own(make: Any) -> None:
    ours = registered(make, 1.0).eval()
    theirs = make("eager").eval()
    theirs.load_state_dict(ours.state_dict())
    tokens, mask = batch()
    kept = mask.bool()
    expected = theirs(input_ids=tokens, attention_mask=mask).logits[kept]
    for model in (ours, ours.train()):
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        found = model(input_ids=tokens, attention_mask=mask).logits[kept]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("make", "alpha"), [(bert, "learned"), (gpt, 1.5)])
def test_attentions_are_returned_and_sparse(make: Any, alpha: Any) -> None:
    """What bertviz and its like read: a tensor (batch, heads, queries, keys) for each layer."""
    model = registered(make, alpha).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "alpha" not in name:
                parameter.mul_(6)
    tokens, mask = batch()
    attentions = model(input_ids=tokens, attention_mask=mask, output_attentions=True).attentions
    assert len(attentions) == 2
    for weights in attentions:
        assert weights.shape == (2, 4, 9, 9)
        kept = weights[:, :, :6]
        torch.testing.assert_close(kept.sum(-1), torch.ones(2, 4, 6))
        assert (weights[1, :, :6, 6:] == 0).all()
        assert (kept[0, :, torch.ones(6, 9).tril().bool()] == 0).any()


@pytest.mark.parametrize(("make", "alpha"), [(gpt, 1.5), (llama, "learned")])
def test_generates_with_its_cache_as_without(make: Any, alpha: Any) -> None:
    model = registered(make, alpha).eval()
    tokens = batch()[0][:1]
    options: dict[str, Any] = {"max_new_tokens": 8, "do_sample": False, "num_beams": 2}
    mask = torch.ones_like(tokens)
    cached = model.generate(tokens, attention_mask=mask, use_cache=True, **options)
    plain = model.generate(tokens, attention_mask=mask, use_cache=False, **options)
    assert torch.equal(cached, plain)
    assert cached.shape[1] > 9


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha must be a number from 1"):
        huggingface.register(alpha=0.5)
    huggingface.register()
    attend = transformers.AttentionInterface()["entmax"]
    tensors = [torch.randn(1, 2, 3, 4) for _ in range(3)]
    with pytest.raises(ValueError, match="does not support softcap"):
        attend(nn.Module(), *tensors, None, softcap=30.0)


@pytest.mark.parametrize("make", [bert, gpt, llama])
def test_a_model_that_has_run_is_loaded_with_entmax(make: Any, tmp_path: Path) -> None:
    """Transformers saves no attention, and takes softmax by itself."""
    model = registered(make, 1.5).eval()
    tokens, mask = batch()
    with torch.no_grad():
        expected = model(input_ids=tokens, attention_mask=mask).logits
        model.save_pretrained(tmp_path)
        loaded = type(model).from_pretrained(tmp_path).eval()
        found = loaded(input_ids=tokens, attention_mask=mask).logits
    assert loaded.config._attn_implementation == "entmax"
    assert torch.equal(found, expected)
    softmax = type(model).from_pretrained(tmp_path, attn_implementation="sdpa").eval()
    with torch.no_grad():
        assert not torch.allclose(softmax(input_ids=tokens, attention_mask=mask).logits, expected)
    softmax.save_pretrained(tmp_path)
    assert "attn_implementation" not in json.loads((tmp_path / "config.json").read_text())


def test_a_name_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    model = registered(gpt, 1.5)
    model(input_ids=batch()[0])
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    assert config["attn_implementation"] == "entmax"
    path.write_text(json.dumps(config | {"attn_implementation": "entmax of another program"}))
    with pytest.raises(ValueError, match="entmax of another program"):
        type(model).from_pretrained(tmp_path)


def test_a_model_that_has_not_run_is_loaded_with_entmax_by_name(tmp_path: Path) -> None:
    model = registered(gpt, 1.5).eval()
    model.save_pretrained(tmp_path)
    tokens = batch()[0]
    loaded = type(model).from_pretrained(tmp_path, attn_implementation="entmax").eval()
    with torch.no_grad():
        assert torch.equal(loaded(input_ids=tokens).logits, model(input_ids=tokens).logits)
