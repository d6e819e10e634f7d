"""Options that exclude each other, given in two places: which ones of the first stay in force.

A place is a set of options that are written together. The later place replaces options of the
earlier one:

| earlier place | later place |
|---|---|
| YAML file | command line |
| base configuration of a matrix | cell of the matrix |
"""

from collections.abc import Mapping
from typing import Any

from onmt_entmax.config import ATTENTION_KINDS

# Of each pair, an option on one side replaces those on the other.
_EXCLUSIVE = (
    ({"train_steps"}, {"train_epochs"}),
    ({"valid_steps"}, {"valid_epochs"}),
    ({"both_embeddings"}, {"src_embeddings", "tgt_embeddings"}),
)
# The options of `SIDES` have this value if they are not given; it is OpenNMT-py's.
NOT_SET = -1
# An option for encoder and decoder (or source and target) together, and those for each alone.
# Written in one place, the common option wins over the others, as in OpenNMT-py. Written in an
# earlier place, it holds for the side that a later place does not name: `layers: 3` in a file and
# `-enc_layers 1` make `enc_layers` 1 and `dec_layers` 3, see `earlier_in_force`.
SIDES = {
    "layers": ("enc_layers", "dec_layers"),
    "rnn_size": ("enc_rnn_size", "dec_rnn_size"),
    "word_vec_size": ("src_word_vec_size", "tgt_word_vec_size"),
}
# Parts of a network with the options `PART_function`, such as softmax, and `PART_alpha`, which is
# only read with the function `entmax`.
ENTMAX_PARTS = ("generator", "global_attention", *(f"{kind}_attention" for kind in ATTENTION_KINDS))


def replaced_by(later: Mapping[str, Any]) -> set[str]:
    """Return the options of an earlier place that others in a later place replace as a whole."""
    replaced: set[str] = set()
    for first, second in _EXCLUSIVE:
        if not first.isdisjoint(later):
            replaced |= second
        if not second.isdisjoint(later):
            replaced |= first
    for part in ENTMAX_PARTS:
        if later.get(f"{part}_function", "entmax") != "entmax":
            replaced.add(f"{part}_alpha")
    return replaced


def earlier_in_force(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an earlier place that stay in force beside those of a later place.

    This is about two places. Written in one place, `train_steps` and `train_epochs` both hold, and
    other options that exclude each other are refused when they are read.
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
