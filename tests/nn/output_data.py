"""An output layer, states and targets, for tests of its loss and of its search form."""

import torch
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer

IGNORED = 3  # the target that does not count


def layer_and_data(
    vocab: int, alpha: float, scale: float, rows: int = 300
) -> tuple[OutputLayer, Tensor, Tensor]:
    """Return a float64 layer, states ``(rows, 24)``, and targets of which some are `IGNORED`.

    Args:
        vocab: number of tokens.
        alpha: of the layer.
        scale: standard deviation of the states; the larger, the smaller supports are.
        rows: number of states.
    """
    torch.manual_seed(vocab)
    layer = OutputLayer(24, vocab, alpha).double()
    hidden = torch.randn(rows, 24, dtype=torch.float64) * scale
    target = torch.randint(vocab, (rows,))
    target[::7] = IGNORED
    return layer, hidden.requires_grad_(), target
