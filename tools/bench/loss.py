"""Time the loss, forward and backward, against cross-entropy (the reference) and entmax 1.3.

    python -m tools.bench.loss --clock cpu --allocator faultfree --vocab 18000 --alpha 1.5 2
    python -m tools.bench.loss --memory --vocab 32000 --output memory.jsonl

The floor is one pass over the scores and one over a gradient of their size. All rows take about
five minutes. entmax 1.3 has only bisection for alpha 1.2 and 1.33, which takes 50 times as long as
cross-entropy and runs with --bisection.
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

ROWS = 1280
MANY = 100_000  # a larger vocabulary has a quarter of the rows, for want of memory
VOCABULARIES = (776, 18_000, 32_000, 128_000)
LOGITS = ("uniform", "normal", "wide", "trained")
ALPHAS = (1.2, 1.33, 1.5, 2.0)


def backward(loss: Callable[[Tensor, Tensor], Tensor], scores: Tensor, target: Tensor) -> None:
    """Run forward and backward once, without an earlier gradient."""
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


def peers(alpha: float, bisection: bool) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Return the losses of entmax 1.3 for this alpha."""
    if alpha == 1.5:
        return {"entmax15_k100": partial(peer.entmax15_loss, k=100)}
    if alpha == 2.0:
        return {"sparsemax_k100": partial(peer.sparsemax_loss, k=100)}
    return {"bisect": partial(peer.entmax_bisect_loss, alpha=alpha)} if bisection else {}


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield the chosen vocabulary sizes, logits and alphas."""
    for vocab in arguments.vocab:
        rows = ROWS if vocab < MANY else ROWS // 4
        for kind in arguments.logits:
            scores = logits(kind, rows, vocab).requires_grad_()
            target = scores.argmax(1) if kind == "trained" else torch.randint(vocab, (rows,))
            for alpha in arguments.alpha:
                losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
                    "cross_entropy": functional.cross_entropy,
                    "ours": partial(entmax_loss, alpha=alpha),
                    **peers(alpha, arguments.bisection),
                }
                runs: dict[str, Callable[[], object]] = {
                    name: partial(backward, loss, scores, target) for name, loss in losses.items()
                }
                runs["floor"] = partial(floor, scores)
                yield Case({"V": vocab, "logits": kind, "alpha": alpha}, runs)


if __name__ == "__main__":
    run(__doc__, cases, declare)
