"""Time the output layer, forward and backward, against Linear and cross-entropy (the reference).

    python -m tools.bench.output_layer --allocator faultfree
    python -m tools.bench.output_layer --only "V=18000 alpha=1.5" --memory

States and weights are random, scaled to the support of a case. The floor is the matrix product of
the scores, by PyTorch's `matmul`. entmax 1.3 (k = 100, or bisection) is timed in one case of each
alpha. All cases take less than three minutes on an idle core.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import entmax as peer
import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.nn.output import OutputLayer
from tools.bench.bisection import scale_for_support
from tools.bench.cases import Case
from tools.bench.runner import run

ROWS = 1280
SIZE = 500  # of states
SAMPLE = 64  # rows whose support is measured
NOTHING_IGNORED = -100  # no class has this number
PEERS: dict[float, Callable[..., Tensor]] = {
    1.2: partial(peer.entmax_bisect_loss, alpha=1.2),
    1.33: partial(peer.entmax_bisect_loss, alpha=1.33),
    1.5: partial(peer.entmax15_loss, k=100),
    2.0: partial(peer.sparsemax_loss, k=100),
}
CASE_OF_PEER = (18_000, 16)  # vocabulary and support with which entmax 1.3 is timed
MANY = 100_000  # a larger vocabulary has a quarter of the rows, for want of memory
# Vocabulary, alpha, supports.
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
    vocab: int, support: float, alpha: float, rows: int
) -> tuple[OutputLayer, Tensor, Tensor]:
    """Return a layer and its input, with about this support per row.

    Args:
        vocab: number of classes.
        support: classes of positive probability, mean.
        alpha: of the layer.
        rows: number of states.

    Returns:
        The layer, states `(rows, SIZE)` that get a gradient, and targets `(rows,)`, the best
        classes.
    """
    layer = OutputLayer(SIZE, vocab, alpha)
    hidden = torch.randn(rows, SIZE)
    target = layer.scores(hidden).argmax(1).detach()

    @torch.no_grad()
    def support_of(factor: float) -> float:
        sample = hidden[:SAMPLE] * factor
        return float(layer.loss(sample, target[:SAMPLE], NOTHING_IGNORED).support) / SAMPLE

    scale = scale_for_support(support_of, support, smallest=1e-3, largest=100, halvings=13)
    return layer, (hidden * scale).requires_grad_(), target


def ours(layer: OutputLayer, hidden: Tensor, target: Tensor) -> None:
    """Run the fused layer forward and backward once."""
    hidden.grad = layer.weight.grad = layer.bias.grad = None
    layer.loss(hidden, target, NOTHING_IGNORED).loss.backward()


def unfused(
    loss: Callable[[Tensor, Tensor], Tensor], layer: OutputLayer, hidden: Tensor, target: Tensor
) -> None:
    """Run a linear layer and a loss forward and backward once."""
    hidden.grad = layer.weight.grad = layer.bias.grad = None
    loss(functional.linear(hidden, layer.weight, layer.bias), target).sum().backward()


def product(layer: OutputLayer, hidden: Tensor) -> Tensor:
    """Return the scores."""
    with torch.no_grad():
        return hidden @ layer.weight.t()


def cases(_: argparse.Namespace) -> Iterator[Case]:
    """Yield vocabulary sizes, alphas and supports."""
    for vocab, alpha, supports in CASES:
        for support in supports:
            rows = ROWS if vocab < MANY else ROWS // 4
            layer, hidden, target = scaled_layer(vocab, support, alpha, rows)
            cross_entropy = partial(functional.cross_entropy, reduction="sum")
            runs: dict[str, Callable[[], object]] = {
                "linear+ce": partial(unfused, cross_entropy, layer, hidden, target),
                "ours": partial(ours, layer, hidden, target),
            }
            if (vocab, support) == CASE_OF_PEER:
                runs["linear+entmax 1.3"] = partial(unfused, PEERS[alpha], layer, hidden, target)
            runs["floor"] = partial(product, layer, hidden)
            yield Case({"V": vocab, "alpha": alpha, "support": support}, runs)


if __name__ == "__main__":
    run(__doc__, cases)
