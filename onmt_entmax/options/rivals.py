"""Options that exclude each other: which of them stay in force if a later place gives others.

A place is a set of options that were written together. The earlier one is a YAML file and the later
one the command line, or the earlier one is the base of a matrix and the later one a cell.
"""

from collections.abc import Mapping
from typing import Any

from onmt_entmax.config import KINDS

# Options on one side of a pair replace those on the other.
_RIVALS = (
    ({"train_steps"}, {"train_epochs"}),
    ({"valid_steps"}, {"valid_epochs"}),
    ({"both_embeddings"}, {"src_embeddings", "tgt_embeddings"}),
)
# The options of `SIDES` have this value if they are not given; it is OpenNMT-py's.
NOT_SET = -1
# An option for encoder and decoder (or source and target) together, and those for each alone.
# Written in one place, the common option wins over the others, as in OpenNMT-py. Written in an
# earlier place, it holds for the side that a later place does not name: `layers: 3` in a file and
# `-enc_layers 1` make `enc_layers` 1 and `dec_layers` 3, see `without_rivals`.
SIDES = {
    "layers": ("enc_layers", "dec_layers"),
    "rnn_size": ("enc_rnn_size", "dec_rnn_size"),
    "word_vec_size": ("src_word_vec_size", "tgt_word_vec_size"),
}
# Parts of a network with the options `PART_function`, such as softmax, and `PART_alpha`, which is
# only read with the function `entmax`.
ENTMAX_PARTS = ("generator", "global_attention", *(f"{kind}_attention" for kind in KINDS))


def replaced_by(later: Mapping[str, Any]) -> set[str]:
    """Return the options of an earlier place that others in a later place replace as a whole."""
    replaced: set[str] = set()
    for first, second in _RIVALS:
        if not first.isdisjoint(later):
            replaced |= second
        if not second.isdisjoint(later):
            replaced |= first
    for part in ENTMAX_PARTS:
        if later.get(f"{part}_function", "entmax") != "entmax":
            replaced.add(f"{part}_alpha")
    return replaced


def without_rivals(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an earlier place that those of a later place leave in force.

    In one place, `train_steps` and `train_epochs` both hold; other rivals are refused when read.
    """
    dropped = replaced_by(later)
    left = {name: value for name, value in earlier.items() if name not in dropped}
    for both, sides in SIDES.items():
        if both in left and both not in later and not later.keys().isdisjoint(sides):
            size = left.pop(both)  # it would win over the side that the later place gives
            if size != NOT_SET:
                left |= dict.fromkeys(sides, size)
    return left


def batch_type_conflict(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> str | None:
    """Return a message if a later `batch_type` gives an earlier `batch_size` another unit.

    It counts sentences or tokens: 64 sentences would become 64 tokens.
    """
    before = earlier.get("batch_type", "sents")
    after = later.get("batch_type", before)
    if after == before or "batch_size" not in earlier or "batch_size" in later:
        return None
    size = earlier["batch_size"]
    return f"batch_type: {after}: batch_size {size} counted {before}; give batch_size too"
