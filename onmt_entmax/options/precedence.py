"""Decide which options of an earlier place stay in force beside the options of a later one.

A place is a set of options that are written together. An option of the later place replaces the
same option of the earlier place, and others that it excludes:

| earlier place | later place |
|---|---|
| YAML file | command line |
| base configuration of a matrix | cell of the matrix |

In one place, `train_steps` and `train_epochs` both hold, and other options that exclude each other
are refused when they are read.
"""

from collections.abc import Mapping
from typing import Any

from onmt_entmax.options.groups import NOT_SET, PARTS_WITH_ALPHA, SIDES_OF

# An option of one set replaces those of the other set of the pair.
_EXCLUSIVE = (
    ({"train_steps"}, {"train_epochs"}),
    ({"valid_steps"}, {"valid_epochs"}),
    ({"both_embeddings"}, {"src_embeddings", "tgt_embeddings"}),
)


def replaced_by(later: Mapping[str, Any]) -> set[str]:
    """Return the options that no longer hold if a later place has these options.

    They are those that the later options exclude, not the same options again.
    """
    replaced: set[str] = set()
    for first, second in _EXCLUSIVE:
        if not first.isdisjoint(later):
            replaced |= second
        if not second.isdisjoint(later):
            replaced |= first
    for part in PARTS_WITH_ALPHA:
        if later.get(f"{part}_function", "entmax") != "entmax":
            replaced.add(f"{part}_alpha")
    return replaced


def earlier_in_force(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an earlier place that stay in force beside those of a later place.

    An earlier option for both sides of a network stays in force for the side that the later place
    does not name: `layers: 3` in a file and `-enc_layers 1` make `dec_layers` 3.
    """
    dropped = replaced_by(later)
    left = {name: value for name, value in earlier.items() if name not in dropped}
    for both, sides in SIDES_OF.items():
        if both in left and both not in later and not later.keys().isdisjoint(sides):
            size = left.pop(both)  # else it would win over the later place's option of one side
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
