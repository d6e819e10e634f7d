"""Time the loss, forward and backward, against cross-entropy (the reference) and entmax 1.3.

    python -m tools.bench.loss --clock cpu --allocator faultfree --vocab 18000 --alpha 1.5 2
    python -m tools.bench.loss --memory --vocab 32000 --output memory.jsonl

A line is a case: a vocabulary, a kind of logits and an alpha. Its contenders are

cross_entropy                   that of PyTorch
ours                            the loss of this project
entmax15_k100, sparsemax_k100   those of entmax 1.3, told to sort only the 100 largest scores
bisect                          that of entmax 1.3 for other alphas, only with --bisection: it takes
                                50 times as long as cross-entropy
floor                           one pass over the scores, and one over a gradient of their size

All cases take about five minutes.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import entmax as peer
import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.sparse import entmax_loss
from tools.bench.arguments import ALPHA, COUNT
from tools.bench.cases import Case
from tools.bench.runner import run
from tools.bench.scores import logits

Loss = Callable[[Tensor, Tensor], Tensor]  # of scores and targets

ROWS = 1280  # of scores, such as those of 64 sentences of 20 tokens
# A vocabulary from here on has a quarter of the rows, so that its scores fit into memory.
LARGE_VOCABULARY = 100_000
SORTED = 100  # scores that the losses of entmax 1.3 sort
VOCABULARIES = (776, 18_000, 32_000, 128_000)
LOGITS = ("uniform", "normal", "wide", "trained")
ALPHAS = (1.2, 1.33, 1.5, 2.0)


def backward(loss: Loss, scores: Tensor, target: Tensor) -> None:
    """Run forward and backward once, without an earlier gradient.

    Args:
        loss: maps scores and targets to losses of rows, or to their mean.
        scores: `(rows, classes)`, which get a gradient.
        target: `(rows,)`, the class of each row.
    """
    scores.grad = None
    loss(scores, target).mean().backward()


def floor(scores: Tensor) -> Tensor:
    """Read the scores and write zeros of their size."""
    scores.detach().amax()
    return torch.zeros_like(scores)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add options that choose rows."""
    vocabularies = " ".join(map(str, VOCABULARIES))
    alphas = " ".join(f"{alpha:g}" for alpha in ALPHAS)
    add = parser.add_argument
    add("--vocab", type=COUNT, nargs="+", default=VOCABULARIES, help=f"default: {vocabularies}")
    add("--logits", choices=LOGITS, nargs="+", default=LOGITS, help="default: all")
    add("--alpha", type=ALPHA, nargs="+", default=ALPHAS, help=f"default: {alphas}")
    add("--bisection", action="store_true", help="time entmax 1.3's too (slow)")


def losses_of(alpha: float, *, bisection: bool) -> dict[str, Loss]:
    """Return the losses for an alpha by name, the reference first.

    Args:
        alpha: alpha of the entmax losses.
        bisection: whether to return the loss of entmax 1.3 for an alpha that it only bisects.
    """
    losses: dict[str, Loss] = {
        "cross_entropy": functional.cross_entropy,
        "ours": partial(entmax_loss, alpha=alpha),
    }
    if alpha == 1.5:
        losses[f"entmax15_k{SORTED}"] = partial(peer.entmax15_loss, k=SORTED)
    elif alpha == 2.0:
        losses[f"sparsemax_k{SORTED}"] = partial(peer.sparsemax_loss, k=SORTED)
    elif bisection:
        losses["bisect"] = partial(peer.entmax_bisect_loss, alpha=alpha)
    return losses


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield the chosen vocabulary sizes, logits and alphas."""
    for vocab in arguments.vocab:
        rows = ROWS if vocab < LARGE_VOCABULARY else ROWS // 4
        for kind in arguments.logits:
            scores = logits(kind, rows, vocab).requires_grad_()
            # A trained model is mostly right.
            target = scores.argmax(1) if kind == "trained" else torch.randint(vocab, (rows,))
            for alpha in arguments.alpha:
                losses = losses_of(alpha, bisection=arguments.bisection)
                contenders: dict[str, Callable[[], object]] = {
                    name: partial(backward, loss, scores, target) for name, loss in losses.items()
                }
                contenders["floor"] = partial(floor, scores)
                yield Case({"V": vocab, "logits": kind, "alpha": alpha}, contenders)


if __name__ == "__main__":
    run(__doc__, cases, declare)
