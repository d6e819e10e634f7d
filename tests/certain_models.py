"""Untrained models that write chosen target tokens, and nothing else."""

from pathlib import Path

import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
from tests.models import small, vocabularies_of

VOCABULARIES = vocabularies_of("ab", "xyz")


def write_model_of(folder: Path, *likely: str) -> Path:
    """Write a model that gives these target tokens all probability; return its folder.

    Its source tokens are a and b, its target tokens x, y and z, and the special ones.
    """
    config = small(generator_alpha=2.0)
    torch.manual_seed(0)
    network = build_model(config, VOCABULARIES)
    with torch.no_grad():
        network.generator.bias.fill_(-100.0)
        network.generator.bias[VOCABULARIES.target.encode(likely)] = 0.0
    save(folder, network, config, VOCABULARIES, {})
    return folder
