"""Pairs of sentences with a label, a split of them by premise, and their vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from onmt_entmax.errors import UserError

LABELS = ("entailment", "neutral", "contradiction")
SYMBOLS = ("<unk>", "<blank>", "<s>")  # with which a vocabulary begins


class Pair(NamedTuple):
    """A premise and a hypothesis.

    Attributes:
        premise: its words.
        hypothesis: its words.
        label: an index of `LABELS`.
        line: number of its line in the file, from 1.
    """

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: int
    line: int


class Parts(NamedTuple):
    """The pairs of a training.

    Attributes:
        training: pairs to train on.
        selection: pairs that choose the epoch.
    """

    training: list[Pair]
    selection: list[Pair]


def hold_out(pairs: Sequence[Pair], share: float) -> Parts:
    """Hold out a share of the pairs for selection, so that no premise is in both parts.

    The choice of premises is random, but the same in every call.

    Args:
        pairs: any number of pairs.
        share: least share of the pairs to hold out.

    Raises:
        UserError: a part would be empty.
    """
    premises = list(dict.fromkeys(pair.premise for pair in pairs))
    Random(1).shuffle(premises)
    counts = Counter(pair.premise for pair in pairs)
    held_out: set[tuple[str, ...]] = set()  # premises
    held_out_pairs = 0
    for premise in premises:
        if held_out_pairs >= share * len(pairs):
            break
        held_out.add(premise)
        held_out_pairs += counts[premise]
    parts = Parts(
        training=[pair for pair in pairs if pair.premise not in held_out],
        selection=[pair for pair in pairs if pair.premise in held_out],
    )
    if not all(parts):
        raise UserError(f"too few different premises to hold out {share:g}: {len(premises)}")
    return parts


def count_words(pairs: Sequence[Pair], min_frequency: int) -> list[str]:
    """Return the vocabulary of some pairs, the most frequent words first, after `SYMBOLS`."""
    counts = Counter(word for pair in pairs for word in (*pair.premise, *pair.hypothesis))
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return [*SYMBOLS, *(word for word in ordered if counts[word] >= min_frequency)]
