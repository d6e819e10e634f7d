r"""Consistent outputs under dropout: each pair is in a batch twice, and each copy is a target.

This is R-Drop (Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks") for
Fenchel-Young losses. Dropout gives the two copies of a target token different scores z and z', and
so different probabilities p and p' = entmax(z'). With the token y, the loss of the first copy is

.. math:: L(z, y) + \lambda L(z, p') \quad\text{with the gradient}\quad p - y + \lambda (p - p')

in z, and that of the second copy the same with both changed. At alpha 1, L is cross-entropy. Above,
it is finite although p' has zeros, where the Kullback-Leibler divergence of R-Drop would be
infinite. Targets p' are constants here; R-Drop has gradients through them, too.
"""

from dataclasses import replace

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse import entmax, entmax_loss


def twice(batch: Batch) -> Batch:
    """Return a batch with each pair twice, the two copies next to each other."""

    def doubled(tensor: Tensor | None, dim: int) -> Tensor | None:
        return None if tensor is None else tensor.repeat_interleave(2, dim)

    return replace(
        batch,
        source=batch.source.repeat_interleave(2, 1),
        source_lengths=batch.source_lengths.repeat_interleave(2),
        target=doubled(batch.target, 1),
        target_lengths=doubled(batch.target_lengths, 0),
        indices=tuple(index for index in batch.indices for _ in range(2)),
    )


def loss_of_copies(layer: OutputLayer, hidden: Tensor, counted: Tensor) -> Tensor:
    """Return the sum of the losses of all rows whose targets are their copies' probabilities.

    Args:
        layer: of the model.
        hidden: ``(rows, hidden)``; rows 2i and 2i + 1 are copies.
        counted: ``(rows,)``, whether rows have a target; equal for copies.

    Returns:
        0-dim: the sum of ``L(z, p')``.
    """
    # Rows without a target keep their place, so that no shape depends on a value, as CUDA graphs
    # need: their scores are equal, and give no gradient.
    scores = layer.scores(hidden.masked_fill(~counted.unsqueeze(1), 0))
    with torch.no_grad():
        targets = entmax(scores, layer.alpha)
        of_copies = targets.view(-1, 2, targets.size(1)).flip(1).view_as(targets)
    losses = entmax_loss(scores, of_copies, layer.alpha, reduction="none")
    return (losses * counted).sum()
