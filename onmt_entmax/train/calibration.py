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
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse import entmax

_LARGEST_POWER = 2.0  # factors are from 1/4 to 4
_PRECISION = 0.01  # in the exponent of 2, so the factor is exact to 1 %
_MOST_SCORES = 2**24  # take 67 MB, and their probabilities as much again


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

    If several factors have this score, it is the smallest of them. The search takes for granted
    that the score has no other local minimum; otherwise it may return that one.

    Args:
        scores: ``(rows, vocab)``.
        targets: the right tokens, ``(rows,)`` int64.
        alpha: the alpha of entmax.
    """

    def score_at(power: float) -> float:
        """Return the Brier score with the factor 2^power."""
        return brier_score(entmax(2**power * scores, alpha), targets)

    return float(2 ** _minimum(score_at, -_LARGEST_POWER, _LARGEST_POWER))


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function of one minimum is smallest, by golden-section search.

    Each step calls the function once, and leaves out a part of the interval: the right one, if two
    values are equal.

    Args:
        function: falls up to its minimum and rises from there; both may be constant in parts.
        low: start of the interval.
        high: its end.
    """
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > _PRECISION:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
    return (low + high) / 2


def calibrate(
    output: OutputLayer,
    batches: Sequence[Batch],
    teacher_forced: Callable[[Batch], tuple[Tensor, Tensor]],
    pad: int,
) -> float:
    """Return the factor of an output layer's scores that fits the targets of the batches.

    Of many targets, every n-th is taken, so that their scores take about 67 MB at most.

    Args:
        output: the output layer of a model in evaluation mode; not multiplied yet, see
            `multiplied_output.py`.
        batches: batches with targets, at least one.
        teacher_forced: returns the decoder's outputs and the targets of a batch, see
            `SparseNMTModel.hidden_states`.
        pad: padding id of the target.
    """
    # With padding, and the start symbol of each target.
    tokens = sum(batch.target.numel() for batch in batches if batch.target is not None)
    # An odd number, since the order of the targets repeats with the sentences of a batch.
    every = math.ceil(tokens * len(output.weight) / _MOST_SCORES) | 1
    scores: list[Tensor] = []  # (kept, vocab) of each batch
    targets: list[Tensor] = []  # (kept,) of each batch
    for batch in batches:
        hidden, target = teacher_forced(batch)
        kept = (target != pad).nonzero().squeeze(1)[::every]
        scores.append(output.scores(hidden[kept]))
        targets.append(target[kept])
    return calibrating_factor(torch.cat(scores), torch.cat(targets), output.alpha)
