"""Small random models and pairs, for tests of figures."""

from pathlib import Path

import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
from tests.models import small, vocabularies_of

VOCABULARIES = vocabularies_of("abcd", "uvw")
SOURCES, TARGETS = ["a b c", "b", "c d a b"], ["u v", "w", "v v u"]


def write_model(folder: Path, alpha: float) -> Path:
    """Write a model whose attention and output have this alpha; return its folder."""
    torch.manual_seed(0)
    config = small(generator_alpha=alpha, global_attention_alpha=alpha, param_init=1.0)
    save(folder, build_model(config, VOCABULARIES).eval(), config, VOCABULARIES, {})
    return folder
