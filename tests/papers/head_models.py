"""Transformers and sentence pairs for the tests of attention heads."""

from pathlib import Path

import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
from onmt_entmax.nn.transformer import ATTENTION_KINDS, alpha_parameters
from tests.models import small_transformer, vocabularies_of

VOCABULARIES = vocabularies_of(["who", "is", "b￭", "c", "￭?", "￭."], "uvw")
SOURCES = ["c", "who is b￭ c ￭?", "c is who ￭.", "b￭ c is c ￭."]
TARGETS = ["", "u v", "w u", "v v w u"]
ALPHAS = {"softmax": 1.0, "learned": "learned"}


def write_heads(folder: Path, alpha: float | str) -> None:
    """Write a Transformer of two layers of two heads, whose attentions all have this alpha."""
    torch.manual_seed(0)
    kinds = {f"{kind}_attention_alpha": alpha for kind in ATTENTION_KINDS}
    config = small_transformer(**kinds, position_encoding=True, param_init=1.0)
    model = build_model(config, VOCABULARIES).eval()
    for a in alpha_parameters(model):
        torch.nn.init.normal_(a, 0.0, 2.0)
    save(folder, model, config, VOCABULARIES, {})
