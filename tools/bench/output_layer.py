"""Forward and backward of the output layer against Linear and cross-entropy (the reference).

The states and weights are random, scaled so that a row has about the support that is asked for.
The floor is the product that makes the scores.
"""

from collections.abc import Callable, Iterator
from functools import partial

import entmax as peer
import torch
from runner import Case, compare, parse_arguments
from torch import Tensor
from torch.nn import functional

from onmt_entmax.modules.output import OutputLayer

ROWS, SIZE = 1280, 500


def scaled_layer(vocab: int, support: float) -> tuple[OutputLayer, Tensor, Tensor]:
    """A layer with states (ROWS, SIZE) and targets for which rows have about this support."""
    layer = OutputLayer(SIZE, vocab)
    hidden = torch.randn(ROWS, SIZE)
    target = layer.scores(hidden).argmax(1).detach()
    low, high = 1e-3, 100.0
    for _ in range(14):
        scale = (low * high) ** 0.5
        with torch.no_grad():
            seen = layer.loss(hidden[:64] * scale, target[:64], -100).support.item() / 64
        low, high = (scale, high) if seen > support else (low, scale)
    return layer, (hidden * scale).requires_grad_(), target


def ours(layer: OutputLayer, hidden: Tensor, target: Tensor) -> None:
    """One forward and backward pass of the fused layer."""
    hidden.grad = layer.weight.grad = layer.bias.grad = None
    layer.loss(hidden, target, -100).loss.backward()


def unfused(
    loss: Callable[[Tensor, Tensor], Tensor], layer: OutputLayer, hidden: Tensor, target: Tensor
) -> None:
    """One forward and backward pass of a linear layer and a loss."""
    hidden.grad = layer.weight.grad = layer.bias.grad = None
    loss(functional.linear(hidden, layer.weight, layer.bias), target).sum().backward()


def product(layer: OutputLayer, hidden: Tensor) -> Tensor:
    """The scores alone."""
    with torch.no_grad():
        return hidden @ layer.weight.t()


def cases() -> Iterator[Case]:
    """Vocabulary sizes by supports."""
    for vocab, supports in (
        (776, (3, 16, 64)),
        (18_000, (3, 16, 64, 500, 2000)),
        (32_000, (3, 16, 64, 500)),
    ):
        for support in supports:
            layer, hidden, target = scaled_layer(vocab, support)
            cross_entropy = partial(functional.cross_entropy, reduction="sum")
            yield Case(
                {"V": vocab, "support": support},
                {
                    "linear+ce": partial(unfused, cross_entropy, layer, hidden, target),
                    "ours": partial(ours, layer, hidden, target),
                    "linear+entmax15_k100": partial(
                        unfused, partial(peer.entmax15_loss, k=100), layer, hidden, target
                    ),
                    "floor": partial(product, layer, hidden),
                },
            )


if __name__ == "__main__":
    compare(cases(), parse_arguments(__doc__))
