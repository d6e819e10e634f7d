"""The lattice of what a search found: the tree of its hypotheses' prefixes, and at every prefix
all next tokens that the model allows.

Peters, Niculae and Martins (2019) draw such a tree in Figure 1, the next tokens along one string
in Figure 2, and the attention along one string in Figure 5; this is the data behind all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.search import Stepper
from onmt_entmax.search.stepper import Step


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
    longest = max(len(string) for string in strings)
    levels = [
        sorted({string[:depth] for string in strings if len(string) >= depth})
        for depth in range(longest + 1)
    ]
    tree = _Tree(
        children={p: i for i, p in enumerate(prefix for level in levels for prefix in level)},
        ends={string: i for i, string in enumerate(strings)},
        minimum=dense_minimum if stepper.dense else 0.0,
        limit=stepper.vocabulary_size if limit is None else limit,
    )
    nodes: list[Node] = []
    log_probs: dict[tuple[int, ...], float] = {(): 0.0}
    state = stepper.start(batch)
    for depth, prefixes in enumerate(levels):
        if depth:
            rows = {prefix: row for row, prefix in enumerate(levels[depth - 1])}
            parents = torch.tensor([rows[prefix[:-1]] for prefix in prefixes])
            state = stepper.select(state, parents)
        last = [prefix[-1] if prefix else stepper.bos for prefix in prefixes]
        step = stepper.step(state, torch.tensor(last))
        state = step.state
        for row, prefix in enumerate(prefixes):
            node = _node(stepper, step, row, (prefix, log_probs[prefix]), tree)
            nodes.append(node)
            for branch in node.branches:
                if branch.child is not None:
                    log_probs[*prefix, branch.token] = node.log_prob + branch.log_prob
    return Lattice(tuple(nodes), strings)


@dataclass(frozen=True)
class _Tree:
    """Where the nodes of a lattice will be, and how much of each is listed."""

    children: dict[tuple[int, ...], int]
    """Index of each prefix's node."""
    ends: dict[tuple[int, ...], int]
    """Index of each hypothesis."""
    minimum: float
    limit: int


def _node(
    stepper: Stepper, step: Step, row: int, prefix: tuple[tuple[int, ...], float], tree: _Tree
) -> Node:
    """The node of one row of a step; `prefix` comes with its log-probability."""
    tokens, log_prob = prefix
    values = step.log_probs[row].double().clamp(max=0.0)  # as search does with a sum above 1
    probs = values.exp()
    possible = (values > -torch.inf).nonzero()[:, 0].tolist()
    ranked = sorted(possible, key=lambda token: -float(values[token]))
    allowed = [t for t in ranked if t not in stepper.excluded and probs[t] >= tree.minimum]
    children = {t: tree.children.get((*tokens, t)) for t in range(stepper.vocabulary_size)}
    ...
