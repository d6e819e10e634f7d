"""The lattice of what a search found: the tree of its hypotheses' prefixes, and at every prefix
all next tokens that the model allows.

Peters, Niculae and Martins (2019) draw such a tree in Figure 1, the next tokens along one string
in Figure 2, and the attention along one string in Figure 5; this is the data behind all three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.search import Stepper


@dataclass(frozen=True)
class Branch:
    """One next token of a prefix."""

    token: int
    log_prob: float
    """Of the token after the prefix, in nats; -inf where the model excludes it, which only a token
    of a given hypothesis can be."""
    child: int | None = None
    """Index of the node that the token leads to, if a given hypothesis goes on there."""
    hypothesis: int | None = None
    """Index of the given hypothesis that ends here, if the token is the end symbol."""

    @property
    def kept(self) -> bool:
        """Whether the token is part of a given hypothesis; if not, the branch was not followed."""
        return self.child is not None or self.hypothesis is not None


@dataclass(frozen=True)
class Node:
    """One prefix of the given hypotheses."""

    prefix: tuple[int, ...]
    log_prob: float
    """Of the prefix, in nats."""
    branches: tuple[Branch, ...]
    """Every token of positive probability that a string may have next, the most probable first;
    without `others`."""
    others: float
    """Probability of the tokens that are not listed: those of a dense model that are hardly
    possible, those beyond the limit, and symbols that no string contains."""
    others_count: int
    """How many tokens `others` sums."""
    attention: tuple[float, ...] | None
    """Over source positions, where the stepper computes it."""

    @property
    def support(self) -> int:
        """How many tokens have positive probability here."""
        listed = sum(branch.log_prob > -torch.inf for branch in self.branches)
        return listed + self.others_count


@dataclass(frozen=True)
class Lattice:
    """The prefix tree of hypotheses; `nodes[0]` is the empty prefix, shorter prefixes come
    first."""

    nodes: tuple[Node, ...]
    hypotheses: tuple[tuple[int, ...], ...]

    def path(self, hypothesis: int) -> tuple[int, ...]:
        """Indices of the nodes along a hypothesis: one for each of its tokens and one for its
        end."""
        indices = [0]
        for token in self.hypotheses[hypothesis]:
            branches = self.nodes[indices[-1]].branches
            indices.append(next(b.child for b in branches if b.token == token and b.child))
        return tuple(indices)

    def log_prob(self, hypothesis: int) -> float:
        """Log-probability of a hypothesis and its end symbol, in nats."""
        last = self.nodes[self.path(hypothesis)[-1]]
        ends = (branch.log_prob for branch in last.branches if branch.hypothesis is not None)
        return last.log_prob + next(ends)


@torch.inference_mode()
def build_lattice(
    stepper: Stepper,
    batch: Any,
    hypotheses: Sequence[Sequence[int]],
    dense_minimum: float = 1e-3,
    limit: int | None = None,
) -> Lattice:
    """Compute the lattice of hypotheses; all prefixes of one length are computed together.

    Args:
        stepper: the model.
        batch: one sentence.
        hypotheses: at least one, all different: token ids without start and end symbol.
        dense_minimum: a dense model (softmax) allows every token everywhere: those less probable
            than this are summed. A sparse model's are all listed.
        limit: list at most so many next tokens of a prefix, and those of hypotheses.

    Raises:
        ValueError: there is no hypothesis, or one was given twice.
    """
    strings = tuple(tuple(string) for string in hypotheses)
    if not strings or len(set(strings)) < len(strings):
        raise ValueError("a lattice needs at least one hypothesis, and none twice")
    levels = [
        sorted({string[:length] for string in strings if len(string) >= length})
        for length in range(1 + max(len(string) for string in strings))
    ]
    listing = _Listing(stepper, _continuations(levels, strings, stepper.eos), dense_minimum, limit)
    nodes: list[Node] = []
    log_probs: dict[tuple[int, ...], float] = {(): 0.0}
    state = stepper.start(batch)
    for length, level in enumerate(levels):
        if length:
            rows = {prefix: row for row, prefix in enumerate(levels[length - 1])}
            parents = torch.tensor([rows[prefix[:-1]] for prefix in level])
            state = stepper.select(state, parents)
        last = [prefix[-1] if prefix else stepper.bos for prefix in level]
        step = stepper.step(state, torch.tensor(last))
        state = step.state
        for row, prefix in enumerate(level):
            branches, others, count = listing.of(prefix, step.log_probs[row])
            attention = None if step.attention is None else tuple(step.attention[row].tolist())
            nodes.append(Node(prefix, log_probs[prefix], branches, others, count, attention))
            for branch in branches:
                log_probs[(*prefix, branch.token)] = log_probs[prefix] + branch.log_prob
    return Lattice(tuple(nodes), strings)


def _continuations(
    levels: Sequence[Sequence[tuple[int, ...]]], strings: Sequence[tuple[int, ...]], eos: int
) -> dict[tuple[int, ...], dict[int, dict[str, int]]]:
    """For each prefix the tokens that hypotheses have next, and where they lead."""
    found: dict[tuple[int, ...], dict[int, dict[str, int]]] = {}
    for index, prefix in enumerate(prefix for level in levels for prefix in level):
        found[prefix] = {}
        if prefix:
            found[prefix[:-1]][prefix[-1]] = {"child": index}
    for index, string in enumerate(strings):
        found[string][eos] = {"hypothesis": index}
    return found


@dataclass(frozen=True)
class _Listing:
    """Which next tokens of a prefix are listed, and which are only summed."""

    stepper: Stepper
    continuations: Mapping[tuple[int, ...], Mapping[int, Mapping[str, int]]]
    dense_minimum: float
    limit: int | None

    def of(
        self, prefix: tuple[int, ...], log_probs: Tensor
    ) -> tuple[tuple[Branch, ...], float, int]:
        """The branches of a prefix, and the probability and number of the other tokens.

        Args:
            prefix: one of the tree.
            log_probs: (vocabulary,) of its next tokens.
        """
        values = log_probs.double().cpu().clamp(max=0.0)  # as search does with a sum above 1
        inside = values > -torch.inf
        kept = self.continuations[prefix]
        # Tokens of hypotheses are listed in any case.
        free = inside.clone()
        free[[*self.stepper.excluded, *kept]] = False
        if self.stepper.dense:
            free &= values >= math.log(self.dense_minimum)
        tokens = free.nonzero()[:, 0]
        order = values[tokens].argsort(descending=True, stable=True)
        room = len(tokens) if self.limit is None else max(self.limit - len(kept), 0)
        listed = [*kept, *tokens[order[:room]].tolist()]
        inside[listed] = False
        branches = [Branch(t, float(values[t]), **kept.get(t, {})) for t in listed]
        branches.sort(key=lambda branch: (-branch.log_prob, branch.token))
        return tuple(branches), float(values[inside].exp().sum()), int(inside.sum())
