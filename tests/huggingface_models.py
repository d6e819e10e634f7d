"""Small random models of Hugging Face `transformers` with entmax attention, and a batch for them.

The functions import `transformers`, not this file: each worker of pytest imports all test files,
and `transformers` takes seconds.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

PAD, BOS, EOS = 0, 1, 2
VOCABULARY, LAYERS, HEADS = 30, 2, 4
TOKENS, SHORTER = 9, 6  # lengths of the two sentences of a batch

MakeModel = Callable[[str], Any]
"""Returns a small random model whose attention has a name, such as `entmax`."""
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


# The classes of the models above that call the registered attention, one in each layer.
ATTENTION_CLASSES = ("BertSelfAttention", "GPT2Attention", "LlamaAttention")


def register_and_build(make: MakeModel, alpha: Alpha) -> Any:
    """Register entmax attention with an alpha, and return a model that has it.

    The registration stays: a model that the same test builds or loads as `entmax` has this alpha.

    Args:
        make: `bert`, `gpt` or `llama`.
        alpha: a number, or "learned" for one that each head learns.
    """
    from onmt_entmax import huggingface

    if alpha != "learned":
        huggingface.register(alpha=alpha)
        return make("entmax")
    huggingface.register(alpha=lambda module: 1 + module.alpha_logits.sigmoid())
    model = make("entmax")
    attentions = [
        module for module in model.modules() if type(module).__name__ in ATTENTION_CLASSES
    ]
    assert len(attentions) == LAYERS
    for module in attentions:
        module.alpha_logits = nn.Parameter(torch.randn(HEADS))
    return model


def batch() -> tuple[Tensor, Tensor]:
    """Return tokens ``(2, TOKENS)`` and their mask; the second sentence is padded."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(EOS + 1, VOCABULARY, (2, TOKENS), generator=generator)
    tokens[1, SHORTER:] = PAD
    return tokens, (tokens != PAD).long()
