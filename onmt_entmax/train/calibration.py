r"""Calibration: multiply the output's scores by the number that fits the development set best.

A network that has seen its training data many times is surer of its outputs than it is right. With
scores z and right tokens y of the development set, `calibrating_factor` minimises

.. math:: L(c) = \sum_r \Omega^*(c \, z_r) - c \, z_{r, y_r},

the Fenchel-Young loss of entmax (Blondel et al. 2020), in one number c > 0. With softmax this is
temperature scaling, of temperature 1 / c (Guo et al. 2017, "On Calibration of Modern Neural
Networks"). L is convex, and its derivative is

.. math:: L'(c) = \sum_r (p_r(c) - e_{y_r})^\top z_r, \qquad p_r(c) = \mathrm{entmax}(c \, z_r).

No token's rank changes, but the probabilities do, and so does their support: a smaller c makes more
tokens possible, and another output can be the most probable one.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse import entmax

# Powers of 2 between which the factor is searched, and how often the interval is halved: the factor
# is exact to 0.1 %, far below what a sample of thousands of tokens tells.
_LOWEST, _HIGHEST, _HALVINGS = -3, 3, 12
_MOST_SCORES = 2**25  # 134 MB


def calibrating_factor(scores: Tensor, targets: Tensor, alpha: float) -> float:
    """Return the factor of the scores with the smallest loss, from 1/8 to 8.

    If several factors have it, as where each right token has all probability, it is the smallest.

    Args:
        scores: ``(rows, vocab)``.
        targets: the right tokens, ``(rows,)`` int64.
        alpha: of entmax.
    """
    # Where all scores are shifted, (p - e) z stays; small scores keep their digits.
    scores = scores - scores.amax(1, keepdim=True)
    of_targets = scores.gather(1, targets.unsqueeze(1)).sum(dtype=torch.float64)

    def slope(factor: float) -> float:
        """Return L'(factor)."""
        expected = (entmax(factor * scores, alpha) * scores).sum(dtype=torch.float64)
        return float(expected - of_targets)

    low, high = float(_LOWEST), float(_HIGHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if slope(2**middle) < 0:
            low = middle
        else:
            high = middle
    return 2.0**high


def calibrate(model: SparseNMTModel, batches: Sequence[Batch], pad: int) -> float:
    """Return the factor of a model's output layer that fits the targets of the batches.

    Of many targets, every n-th is taken, so that their scores fit in 134 MB.

    Args:
        model: in evaluation mode; its output layer is not multiplied yet.
        batches: with targets, on the CPU; at least one.
        pad: padding id of the target.
    """
    output = model.generator
    # With padding, and the start symbol of each target.
    tokens = sum(batch.target.numel() for batch in batches if batch.target is not None)
    every = math.ceil(tokens * len(output.weight) / _MOST_SCORES)
    scores: list[Tensor] = []  # of each batch, (kept, vocab)
    targets: list[Tensor] = []  # of each batch, (kept,)
    for batch in batches:
        hidden, target = model.hidden_states(batch.to(device_of(model)))
        kept = (target != pad).nonzero().squeeze(1)[::every]
        scores.append(output.scores(hidden[kept]))
        targets.append(target[kept])
    return calibrating_factor(torch.cat(scores), torch.cat(targets), output.alpha)


@contextmanager
def multiplied(output: OutputLayer, factor: float) -> Iterator[list[Tensor] | None]:
    """Multiply weight and bias of an output layer, and so its scores, inside the block.

    Yields:
        Weight and bias as they were; None if the factor is 1.
    """
    if factor == 1:
        yield None
        return
    raw = [output.weight.detach().clone(), output.bias.detach().clone()]
    with torch.no_grad():
        output.weight.mul_(factor)
        output.bias.mul_(factor)
    try:
        yield raw
    finally:
        restore_output(output, raw)


@torch.no_grad()
def restore_output(output: OutputLayer, raw: Sequence[Tensor] | None) -> None:
    """Give an output layer, whose weights keep their memory, what `multiplied` yielded."""
    if raw is not None:
        output.weight.copy_(raw[0])
        output.bias.copy_(raw[1])
