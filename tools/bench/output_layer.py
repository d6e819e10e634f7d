"""Forward and backward of the output layer against Linear and cross-entropy (the reference).

    python tools/bench/output_layer.py --allocator faultfree
    python tools/bench/output_layer.py --only "V=18000 alpha=1.5" --memory

The states and weights are random, scaled so that a row has about the support that is asked for.
The floor is the product that makes the scores, by PyTorch's own `matmul`. entmax 1.3 (with k = 100,
or bisection) takes part in one case for each alpha. All cases take under three minutes on an idle
core.
"""

from collections.abc import Callable, Iterator
from functools import partial

import entmax as peer
import torch
from runner import Case, compare, parse_arguments
from torch import Tensor
from torch.nn import functional

from onmt_entmax.nn.output import OutputLayer

ROWS, SIZE = 1280, 500
PEERS: dict[float, Callable[..., Tensor]] = {
    1.2: partial(peer.entmax_bisect_loss, alpha=1.2),
    1.33: partial(peer.entmax_bisect_loss, alpha=1.33),
    1.5: partial(peer.entmax15_loss, k=100),
    2.0: partial(peer.sparsemax_loss, k=100),
}
# Vocabulary, alpha, supports; 128,000 tokens with a quarter of the rows.
CASES = (
    (776, 1.5, (3, 16, 64)),
    (18_000, 1.5, (3, 16, 64, 500, 2000)),
    (18_000, 1.2, (16,)),
    (18_000, 1.33, (16,)),
    (18_000, 2.0, (16,)),
    (32_000, 1.5, (3, 64, 500)),
    (128_000, 1.5, (3, 64)),
)


def scaled_layer(
    vocab: int, support: float, alpha: float = 1.5, rows: int = ROWS
) -> tuple[OutputLayer, Tensor, Tensor]:
    """A layer with states (rows, SIZE) and targets for which rows have about this support."""
    layer = OutputLayer(SIZE, vocab, alpha)
    hidden = torch.randn(rows, SIZE)
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
    """Vocabulary sizes and alphas by supports."""
    for vocab, alpha, supports in CASES:
        for support in supports:
            rows = ROWS if vocab < 100_000 else ROWS // 4
            layer, hidden, target = scaled_layer(vocab, support, alpha, rows)
            cross_entropy = partial(functional.cross_entropy, reduction="sum")
            runs: dict[str, Callable[[], object]] = {
                "linear+ce": partial(unfused, cross_entropy, layer, hidden, target),
                "ours": partial(ours, layer, hidden, target),
            }
            if vocab == 18_000 and support == 16:
                runs["linear+entmax 1.3"] = partial(unfused, PEERS[alpha], layer, hidden, target)
            runs["floor"] = partial(product, layer, hidden)
            yield Case({"V": vocab, "alpha": alpha, "support": support}, runs)


if __name__ == "__main__":
    compare(cases(), parse_arguments(__doc__))
