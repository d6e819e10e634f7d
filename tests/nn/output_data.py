"""A random output layer, with states and targets, for tests of its loss and in a search."""

import torch
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer

SIZE = 24  # of a state
IGNORED = 3  # the target that does not count


def layer_and_data(
    vocab: int, alpha: float, scale: float, rows: int = 300
) -> tuple[OutputLayer, Tensor, Tensor]:
    """Return a layer in float64, states ``(rows, SIZE)``, and targets ``(rows,)``.

    Every seventh target is `IGNORED`, and a few others are by chance.

    Args:
        vocab: number of tokens.
        alpha: the alpha of the layer.
        scale: standard deviation of the states. The larger they are, the smaller supports are.
        rows: number of states.
    """
    torch.manual_seed(vocab)
    layer = OutputLayer(SIZE, vocab, alpha).double()
    hidden = torch.randn(rows, SIZE, dtype=torch.float64) * scale
    target = torch.randint(vocab, (rows,))
    target[::7] = IGNORED
    return layer, hidden.requires_grad_(), target
