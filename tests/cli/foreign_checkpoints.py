"""Checkpoints like those of OpenNMT-py, made in memory."""

import argparse
from types import SimpleNamespace
from typing import Any

from onmt_entmax.cli import import_onmt
from onmt_entmax.cli.foreign_checkpoint import vocabularies_of
from onmt_entmax.cli.foreign_options import model_config, options_of
from onmt_entmax.model import SparseNMTModel

Checkpoint = dict[str, Any]


def checkpoint_with(**options: object) -> Checkpoint:
    """Return a checkpoint with these options, tiny vocabularies and no weights."""
    specials = ["<unk>", "<blank>", "<s>", "</s>"]

    def field(tokens: list[str]) -> SimpleNamespace:
        """Return what stands for a `TextMultiField` of torchtext: a list of named fields."""
        vocabulary = SimpleNamespace(itos=tokens)  # index to string
        return SimpleNamespace(fields=[("src", SimpleNamespace(vocab=vocabulary))])

    return {
        "model": {},
        "generator": {},
        "vocab": {"src": field([*specials[:2], "a"]), "tgt": field([*specials, "b"])},
        "opt": argparse.Namespace(**options),
    }


def convert(content: Checkpoint) -> SparseNMTModel:
    """Return the model of a checkpoint, as `import-onmt` reads it."""
    config = model_config(options_of(content))
    return import_onmt.model_of(content, config, vocabularies_of(content))
