"""The prefix tree of hypotheses, with all next tokens that the model allows at every prefix.

These are the data of Figures 1 (tree), 2 (next tokens along a sequence) and 5 (attention along a
sequence) of Peters, Niculae and Martins (2019).
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.search import Stepper

# Less probable tokens of a dense model (softmax) go into `others`.
_DENSE_MINIMUM = 1e-3


@dataclass(frozen=True)
class Branch:
    """One next token of a prefix."""

    token: int
    log_prob: float
    """Of the token after the prefix, in nats; -inf if the model excludes it, as it may a token of a
    given hypothesis."""
    child: int | None = None
    """Index of the next node, if a given hypothesis goes on with the token."""
    hypothesis: int | None = None
    """Index of the given hypothesis that ends here, for the end symbol."""


@dataclass(frozen=True)
class Node:
    """One prefix of the given hypotheses."""

    prefix: tuple[int, ...]
    log_prob: float
    """Of the prefix, in nats."""
    branches: tuple[Branch, ...]
    """The next tokens of positive probability, the most probable first, without `others`."""
    others: float
    """Total probability of the tokens that are not listed: improbable ones of a dense model, those
    beyond the limit, and symbols that no output contains."""
    others_count: int
    """Number of tokens in `others`."""
    attention: tuple[float, ...] | None
    """Over source positions, if the stepper returns it."""

    @property
    def support(self) -> int:
        """Number of tokens of positive probability here."""
        listed = sum(branch.log_prob > -torch.inf for branch in self.branches)
        return listed + self.others_count


@dataclass(frozen=True)
class Lattice:
    """The prefix tree of hypotheses, shorter prefixes first; `nodes[0]` is the empty prefix."""

    nodes: tuple[Node, ...]

    def log_probs(self) -> dict[int, float]:
        """Return the log-probability of each hypothesis with its end symbol, in nats."""
        return {
            branch.hypothesis: node.log_prob + branch.log_prob
            for node in self.nodes
            for branch in node.branches
            if branch.hypothesis is not None
        }


@torch.inference_mode()
def build_lattice(
    stepper: Stepper,
    batch: Any,
    hypotheses: Sequence[Sequence[int]],
    limit: int = sys.maxsize,
) -> Lattice:
    """Compute the lattice of hypotheses; all prefixes of one length are computed together.

    Args:
        stepper: the model.
        batch: one sentence.
        hypotheses: token ids without start and end symbol; at least one, all different.
        limit: largest number of next tokens listed for a prefix, except those of hypotheses.
    """
    sequences = tuple(tuple(tokens) for tokens in hypotheses)
    levels = [
        sorted({sequence[:length] for sequence in sequences if len(sequence) >= length})
        for length in range(1 + max(len(sequence) for sequence in sequences))
    ]
    kept = _continuations(levels, sequences, stepper.eos)
    nodes: list[Node] = []
    log_probs: dict[tuple[int, ...], float] = {(): 0.0}
    state = stepper.start(batch)
    for length, level in enumerate(levels):
        if length:
            row_of = {prefix: row for row, prefix in enumerate(levels[length - 1])}
            parents = torch.tensor([row_of[prefix[:-1]] for prefix in level])
            state = stepper.select(state, parents)
        last = [prefix[-1] if prefix else stepper.bos for prefix in level]
        step = stepper.step(state, torch.tensor(last))
        state = step.state
        for row, prefix in enumerate(level):
            branches, others, count = _listed(stepper, kept[prefix], step.log_probs[row], limit)
            attention = None if step.attention is None else tuple(step.attention[row].tolist())
            nodes.append(Node(prefix, log_probs[prefix], branches, others, count, attention))
            for branch in branches:
                log_probs[(*prefix, branch.token)] = log_probs[prefix] + branch.log_prob
    return Lattice(tuple(nodes))


def _continuations(
    levels: Sequence[Sequence[tuple[int, ...]]], sequences: Sequence[tuple[int, ...]], eos: int
) -> dict[tuple[int, ...], dict[int, dict[str, int]]]:
    """Return, for each prefix, the next tokens of hypotheses, and where they lead."""
    # By prefix and next token, the fields of `Branch` that say where it leads.
    continuations: dict[tuple[int, ...], dict[int, dict[str, int]]] = {}
    for index, prefix in enumerate(prefix for level in levels for prefix in level):
        continuations[prefix] = {}
        if prefix:
            continuations[prefix[:-1]][prefix[-1]] = {"child": index}
    for index, sequence in enumerate(sequences):
        continuations[sequence][eos] = {"hypothesis": index}
    return continuations


def _listed(
    stepper: Stepper,
    kept: Mapping[int, Mapping[str, int]],
    log_probs: Tensor,
    limit: int,
) -> tuple[tuple[Branch, ...], float, int]:
    """Return the branches of a prefix, and probability and number of the other tokens.

    Args:
        stepper: the model.
        kept: the next tokens of hypotheses, and where they lead.
        log_probs: `(vocabulary,)` of the next tokens.
        limit: see `build_lattice`.
    """
    values = log_probs.double().cpu().clamp(max=0.0)  # a sum may round above 1, as in search
    inside = values > -torch.inf
    free = inside.clone()
    free[[*stepper.excluded, *kept]] = False
    if stepper.dense:
        free &= values >= math.log(_DENSE_MINIMUM)
    tokens = free.nonzero()[:, 0]
    order = values[tokens].argsort(descending=True, stable=True)
    others = max(limit - len(kept), 0)  # that are listed beside those of hypotheses
    listed = [*kept, *tokens[order[:others]].tolist()]
    inside[listed] = False
    branches = [Branch(token, float(values[token]), **kept.get(token, {})) for token in listed]
    branches.sort(key=lambda branch: (-branch.log_prob, branch.token))
    return tuple(branches), float(values[inside].exp().sum()), int(inside.sum())
