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


def hold_out(pairs: Sequence[Pair], share: float) -> tuple[list[Pair], list[Pair]]:
    """Split pairs by premise, so that no premise is in both parts; every call splits alike.

    Args:
        pairs: any number of pairs.
        share: least share of the pairs that goes to the second part.

    Raises:
        UserError: a part would be empty.
    """
    premises = list(dict.fromkeys(pair.premise for pair in pairs))
    Random(1).shuffle(premises)
    counts = Counter(pair.premise for pair in pairs)
    chosen: set[tuple[str, ...]] = set()
    held_out = 0  # pairs with a chosen premise
    for premise in premises:
        if held_out >= share * len(pairs):
            break
        chosen.add(premise)
        held_out += counts[premise]
    first_part = [pair for pair in pairs if pair.premise not in chosen]
    second_part = [pair for pair in pairs if pair.premise in chosen]
    if not first_part or not second_part:
        raise UserError(f"too few different premises to hold out {share:g}: {len(premises)}")
    return first_part, second_part


def count_words(pairs: Sequence[Pair], min_frequency: int) -> list[str]:
    """Return the vocabulary of some pairs, the most frequent words first, after `SYMBOLS`."""
    counts = Counter(word for pair in pairs for word in (*pair.premise, *pair.hypothesis))
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return [*SYMBOLS, *(word for word in ordered if counts[word] >= min_frequency)]
