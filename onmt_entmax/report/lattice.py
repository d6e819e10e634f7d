"""The prefix tree of hypotheses, with all next tokens that the model allows at every prefix.

Peters, Niculae and Martins (2019) draw such data in Figures 1 (tree), 2 (next tokens along a
sequence) and 5 (attention along a sequence).
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.search import Stepper

_DENSE_MINIMUM = 1e-3  # less probable tokens of a dense model (softmax) go into `others`
_Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Branch:
    """One next token of a prefix.

    Attributes:
        token: its id.
        log_prob: log-probability of the token after the prefix, in nats; -inf if the model excludes
            it, which is possible for a token of a given hypothesis.
        child: index of the next node, if a given hypothesis goes on with the token.
        hypothesis: index of the given hypothesis that ends here, if the token is the end symbol.
    """

    token: int
    log_prob: float
    child: int | None = None
    hypothesis: int | None = None


@dataclass(frozen=True)
class Node:
    """One prefix of the given hypotheses.

    Attributes:
        prefix: token ids.
        log_prob: log-probability of the prefix, in nats.
        branches: the listed next tokens, the most probable first: those with which a given
            hypothesis goes on, and others of positive probability.
        others: total probability of the tokens that are not listed. These are improbable tokens of
            a dense model, tokens beyond the limit, and symbols that no output contains.
        others_count: number of tokens in `others`.
        attention: attention weights of the source positions; None if the stepper returns none.
    """

    prefix: _Tokens
    log_prob: float
    branches: tuple[Branch, ...]
    others: float
    others_count: int
    attention: tuple[float, ...] | None

    @property
    def support(self) -> int:
        """Number of tokens of positive probability here."""
        listed = sum(branch.log_prob > -torch.inf for branch in self.branches)
        return listed + self.others_count


@dataclass(frozen=True)
class Lattice:
    """The prefix tree of hypotheses, shorter prefixes first; `nodes[0]` is the empty prefix."""

    nodes: tuple[Node, ...]

    def token_log_probs(self) -> dict[int, tuple[float, ...]]:
        """Return the log-probabilities of the tokens of each hypothesis, the end symbol last.

        They are in nats, by the index of the hypothesis.
        """
        to_node: dict[int, tuple[float, ...]] = {0: ()}
        to_end = {}
        # Parents come before their children, so `to_node` has the parent's entry when it is read.
        for number, node in enumerate(self.nodes):
            for branch in node.branches:
                log_probs = (*to_node[number], branch.log_prob)
                if branch.child is not None:
                    to_node[branch.child] = log_probs
                if branch.hypothesis is not None:
                    to_end[branch.hypothesis] = log_probs
        return to_end


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
    leads_to = _continuations(levels, sequences, stepper.eos)
    nodes: list[Node] = []
    log_probs: dict[_Tokens, float] = {(): 0.0}
    state = stepper.start(batch)
    for length, level in enumerate(levels):
        if length:
            state = stepper.select(state, _rows_of_parents(levels[length - 1], level))
        last = [prefix[-1] if prefix else stepper.bos for prefix in level]
        step = stepper.step(state, torch.tensor(last))
        state = step.state
        attention = None if step.attention is None else step.attention.tolist()
        for row, prefix in enumerate(level):
            listing = _list_tokens(stepper, leads_to[prefix], step.log_probs[row], limit)
            nodes.append(
                Node(
                    prefix,
                    log_probs[prefix],
                    branches=listing.branches,
                    others=listing.others,
                    others_count=listing.others_count,
                    attention=None if attention is None else tuple(attention[row]),
                )
            )
            for branch in listing.branches:
                log_probs[(*prefix, branch.token)] = log_probs[prefix] + branch.log_prob
    return Lattice(tuple(nodes))


def _rows_of_parents(parents: Sequence[_Tokens], level: Sequence[_Tokens]) -> Tensor:
    """Return the row in `parents` of each prefix of a level without its last token, `(level,)`."""
    row_of = {prefix: row for row, prefix in enumerate(parents)}
    return torch.tensor([row_of[prefix[:-1]] for prefix in level])


class _Destination(NamedTuple):
    """The node or the hypothesis to which a next token leads; see `Branch`."""

    child: int | None = None
    hypothesis: int | None = None


def _continuations(
    levels: Sequence[Sequence[_Tokens]], sequences: Sequence[_Tokens], eos: int
) -> dict[_Tokens, dict[int, _Destination]]:
    """Return for each prefix the next tokens of hypotheses, and where they lead.

    Args:
        levels: the prefixes of each length, in the order of the nodes.
        sequences: the hypotheses.
        eos: id of the end symbol.
    """
    continuations: dict[_Tokens, dict[int, _Destination]] = {}
    for index, prefix in enumerate(prefix for level in levels for prefix in level):
        continuations[prefix] = {}
        if prefix:
            continuations[prefix[:-1]][prefix[-1]] = _Destination(child=index)
    for index, sequence in enumerate(sequences):
        continuations[sequence][eos] = _Destination(hypothesis=index)
    return continuations


class _Listing(NamedTuple):
    """The next tokens of a prefix; see the fields of `Node`."""

    branches: tuple[Branch, ...]
    others: float
    others_count: int


def _list_tokens(
    stepper: Stepper, leads_to: Mapping[int, _Destination], log_probs: Tensor, limit: int
) -> _Listing:
    """List the next tokens of a prefix, and sum up those that are not listed.

    Args:
        stepper: the model.
        leads_to: the next tokens of hypotheses, which are always listed.
        log_probs: `(vocabulary,)` of the next tokens.
        limit: see `build_lattice`.
    """
    values = log_probs.double().cpu().clamp(max=0.0)  # a sum may round above 1, as in search
    possible = values > -torch.inf
    may_be_listed = possible.clone()
    may_be_listed[[*stepper.excluded, *leads_to]] = False
    if stepper.dense:
        may_be_listed &= values >= math.log(_DENSE_MINIMUM)
    tokens = may_be_listed.nonzero()[:, 0]
    best_first = values[tokens].argsort(descending=True, stable=True)
    room = max(limit - len(leads_to), 0)
    listed = [*leads_to, *tokens[best_first[:room]].tolist()]
    branches = []
    for token in listed:
        destination = leads_to.get(token, _Destination())
        branches.append(
            Branch(token, float(values[token]), destination.child, destination.hypothesis)
        )
    branches.sort(key=lambda branch: (-branch.log_prob, branch.token))
    is_other = possible.clone()
    is_other[listed] = False
    return _Listing(tuple(branches), float(values[is_other].exp().sum()), int(is_other.sum()))
