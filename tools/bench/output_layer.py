"""Time the output layer, forward and backward, against Linear and cross-entropy (the reference).

    python -m tools.bench.output_layer --allocator faultfree
    python -m tools.bench.output_layer --only "V=18000 alpha=1.5" --memory

States and weights are random, scaled to the support of a case. The floor is the matrix product of
the scores, by PyTorch's `matmul`. entmax 1.3 (k = 100, or bisection) is timed in one case of each
alpha. All cases take less than three minutes on an idle core.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import entmax as peer
import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.nn.output import OutputLayer
from tools.bench.bisection import scale_for_support
from tools.bench.cases import Case
from tools.bench.runner import run

ROWS = 1280  # of states, such as those of 64 sentences of 20 tokens
SIZE = 500  # of a state
SAMPLE = 64  # rows whose support is measured
NOTHING_IGNORED = -100  # no class has this number
PEERS: dict[float, Callable[..., Tensor]] = {
    1.2: partial(peer.entmax_bisect_loss, alpha=1.2),
    1.33: partial(peer.entmax_bisect_loss, alpha=1.33),
    1.5: partial(peer.entmax15_loss, k=100),
    2.0: partial(peer.sparsemax_loss, k=100),
}
CASE_OF_PEER = (18_000, 16)  # vocabulary and support with which entmax 1.3 is timed
# A vocabulary from here on has a quarter of the rows, so that its scores fit into memory.
LARGE_VOCABULARY = 100_000


class Sizes(NamedTuple):
    """Layers to time.

    Attributes:
        vocab: number of classes.
        alpha: alpha of the layer.
        supports: mean number of classes of positive probability, for each case.
    """

    vocab: int
    alpha: float
    supports: Sequence[int]


SIZES = (
    Sizes(776, 1.5, (3, 16, 64)),
    Sizes(18_000, 1.5, (3, 16, 64, 500, 2000)),
    Sizes(18_000, 1.2, (16,)),
    Sizes(18_000, 1.33, (16,)),
    Sizes(18_000, 2.0, (16,)),
    Sizes(32_000, 1.5, (3, 64, 500)),
    Sizes(128_000, 1.5, (3, 64)),
)


class LayerInput(NamedTuple):
    """A layer with the input of its loss.

    Attributes:
        layer: a layer with random weights.
        hidden: states `(rows, SIZE)`, which get a gradient.
        target: `(rows,)`, the class of the largest score of each row.
    """

    layer: OutputLayer
    hidden: Tensor
    target: Tensor


def scaled_input(vocab: int, support: float, alpha: float) -> LayerInput:
    """Return a layer and an input with about this support per row.

    Args:
        vocab: number of classes.
        support: mean number of classes of positive probability.
        alpha: alpha of the layer.
    """
    rows = ROWS if vocab < LARGE_VOCABULARY else ROWS // 4
    layer = OutputLayer(SIZE, vocab, alpha)
    hidden = torch.randn(rows, SIZE)
    target = layer.scores(hidden).argmax(1).detach()

    @torch.no_grad()
    def support_of(factor: float) -> float:
        sample = hidden[:SAMPLE] * factor
        return float(layer.loss(sample, target[:SAMPLE], NOTHING_IGNORED).support) / SAMPLE

    # Thirteen halvings leave 0.14 % between the bounds: 100,000 ** (1 / 8192).
    scale = scale_for_support(support_of, support, smallest=1e-3, largest=100, halvings=13)
    return LayerInput(layer, (hidden * scale).requires_grad_(), target)


def forget_gradients(batch: LayerInput) -> None:
    """Remove the gradients of an earlier run, to which those of the next would be added."""
    batch.hidden.grad = batch.layer.weight.grad = batch.layer.bias.grad = None


def ours(batch: LayerInput) -> None:
    """Run the fused layer forward and backward once."""
    forget_gradients(batch)
    batch.layer.loss(batch.hidden, batch.target, NOTHING_IGNORED).loss.backward()


def unfused(loss: Callable[[Tensor, Tensor], Tensor], batch: LayerInput) -> None:
    """Run a linear layer and a loss forward and backward once."""
    forget_gradients(batch)
    scores = functional.linear(batch.hidden, batch.layer.weight, batch.layer.bias)
    loss(scores, batch.target).sum().backward()


def product(batch: LayerInput) -> Tensor:
    """Return the scores `(rows, classes)` without bias, which take one matrix product."""
    with torch.no_grad():
        return batch.hidden @ batch.layer.weight.t()


def cases(_: argparse.Namespace) -> Iterator[Case]:
    """Yield vocabulary sizes, alphas and supports."""
    cross_entropy = partial(functional.cross_entropy, reduction="sum")
    for vocab, alpha, supports in SIZES:
        for support in supports:
            batch = scaled_input(vocab, support, alpha)
            contenders: dict[str, Callable[[], object]] = {
                "linear+ce": partial(unfused, cross_entropy, batch),
                "ours": partial(ours, batch),
            }
            if (vocab, support) == CASE_OF_PEER:
                contenders["linear+entmax 1.3"] = partial(unfused, PEERS[alpha], batch)
            contenders["floor"] = partial(product, batch)
            yield Case({"V": vocab, "alpha": alpha, "support": support}, contenders)


if __name__ == "__main__":
    run(__doc__, cases)
