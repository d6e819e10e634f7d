r"""Calibration: multiply the output's scores by the number that fits the development set best.

A network that has seen its training data many times is surer of its outputs than it is right. With
scores :math:`z_r` of the development set and right tokens :math:`y_r`, the factor c minimises the
Brier score (Brier 1950, "Verification of Forecasts Expressed in Terms of Probability")

.. math:: B(c) = \frac{1}{n} \sum_r \lVert p_r(c) - e_{y_r} \rVert^2, \qquad
    p_r(c) = \mathrm{entmax}(c \, z_r).

It is smallest in expectation at the true probabilities, and finite where a right token has
probability 0. The log-likelihood, by which temperature scaling fits softmax (Guo et al. 2017, "On
Calibration of Modern Neural Networks"; the temperature is 1 / c), is infinite there.

No token's rank changes, but probabilities do, and so does their support: a smaller c makes more
tokens possible, and another output can be the most probable one.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse import entmax

_LARGEST_POWER = 2.0  # factors are from 1/4 to 4
_PRECISION = 0.01  # of the power of 2: the factor is exact to 1 %
_GOLDEN = (math.sqrt(5) - 1) / 2
_MOST_SCORES = 2**24  # 67 MB, and their probabilities as much again


def brier_score(probabilities: Tensor, targets: Tensor) -> float:
    """Return the mean squared distance of probabilities from those of the right tokens alone.

    Args:
        probabilities: ``(rows, vocab)``.
        targets: the right tokens, ``(rows,)`` int64.
    """
    right = targets.unsqueeze(1)
    errors = probabilities.scatter_add(1, right, probabilities.new_full(right.shape, -1))
    return float(errors.square().sum(1).mean(dtype=torch.float64))


def calibrating_factor(scores: Tensor, targets: Tensor, alpha: float) -> float:
    """Return the factor of the scores with the smallest Brier score, from 1/4 to 4.

    A golden-section search in its logarithm; of several factors with this score it finds the
    smallest.

    Args:
        scores: ``(rows, vocab)``.
        targets: the right tokens, ``(rows,)`` int64.
        alpha: of entmax.
    """

    def score_at(power: float) -> float:
        """Return the Brier score with the factor 2^power."""
        return brier_score(entmax(2**power * scores, alpha), targets)

    low, high = -_LARGEST_POWER, _LARGEST_POWER
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = score_at(left), score_at(right)
    while high - low > _PRECISION:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = score_at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = score_at(right)
    return float(2 ** ((low + high) / 2))


def calibrate(
    output: OutputLayer,
    batches: Sequence[Batch],
    teacher_forced: Callable[[Batch], tuple[Tensor, Tensor]],
    pad: int,
) -> float:
    """Return the factor of an output layer's scores that fits the targets of the batches.

    Of many targets, every n-th is taken, so that their scores take 67 MB.

    Args:
        output: of a model in evaluation mode; not multiplied yet.
        batches: with targets; at least one.
        teacher_forced: returns the decoder's outputs and the targets of a batch, see
            `SparseNMTModel.hidden_states`.
        pad: padding id of the target.
    """
    # With padding, and the start symbol of each target.
    tokens = sum(batch.target.numel() for batch in batches if batch.target is not None)
    # An odd number, since the order of the targets repeats with the sentences of a batch.
    every = math.ceil(tokens * len(output.weight) / _MOST_SCORES) | 1
    scores: list[Tensor] = []  # of each batch, (kept, vocab)
    targets: list[Tensor] = []  # of each batch, (kept,)
    for batch in batches:
        hidden, target = teacher_forced(batch)
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
