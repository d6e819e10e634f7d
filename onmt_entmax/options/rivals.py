"""Options that exclude each other: one of a later place replaces its rivals of an earlier place.

A later place is the command line after a YAML file, or a cell of a matrix after its base. In one
place, rivals are refused where the options are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.nn.transformer import KINDS

# Each of these replaces those after it.
_RIVALS: Mapping[str, tuple[str, ...]] = {
    "train_steps": ("train_epochs",),
    "train_epochs": ("train_steps",),
    "valid_steps": ("valid_epochs",),
    "valid_epochs": ("valid_steps",),
    "both_embeddings": ("src_embeddings", "tgt_embeddings"),
    "src_embeddings": ("both_embeddings",),
    "tgt_embeddings": ("both_embeddings",),
}
# An option of both sides, and those of each side. In one place, that of both sides wins.
_SIDES = {
    "layers": ("enc_layers", "dec_layers"),
    "rnn_size": ("enc_rnn_size", "dec_rnn_size"),
    "word_vec_size": ("src_word_vec_size", "tgt_word_vec_size"),
}
# Alphas that are read with the function `entmax` alone.
_ALPHAS = {
    "generator_function": "generator_alpha",
    "global_attention_function": "global_attention_alpha",
    **{f"{kind}_attention_function": f"{kind}_attention_alpha" for kind in KINDS},
}


def without_rivals(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an earlier place that those of a later place leave in force.

    Raises:
        UserError: `batch_size` would change its meaning.
    """
    dropped = {rival for name in later for rival in _RIVALS.get(name, ())}
    dropped |= {a for function, a in _ALPHAS.items() if later.get(function, "entmax") != "entmax"}
    left = {name: value for name, value in earlier.items() if name not in dropped}
    for both, sides in _SIDES.items():
        if both in left and both not in later and not later.keys().isdisjoint(sides):
            size = left.pop(both)
            left |= dict.fromkeys(sides, size) if size != -1 else {}  # -1: not set
    before = earlier.get("batch_type", "sents")
    if later.get("batch_type", before) != before and "batch_size" in left.keys() - later.keys():
        raise UserError(
            f"batch_type: {later['batch_type']}: batch_size {left['batch_size']} counts {before}; "
            f"give batch_size too"
        )
    return left
