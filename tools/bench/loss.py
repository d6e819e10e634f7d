"""Forward and backward of the loss against cross-entropy (the reference) and entmax 1.3.

The floor is one pass over the scores and one over a gradient of their size. All rows take about
five minutes; entmax 1.3's bisection, its only loss for alpha 1.2 and 1.33, needs 50 times the
cross-entropy's time and runs if it is asked for.

python tools/bench/loss.py --clock cpu --allocator faultfree --vocab 18000 --alpha 1.5 2
python tools/bench/loss.py --memory --vocab 32000 --output memory.jsonl
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import entmax as peer
import torch
from runner import Case, compare, logits, parse_arguments
from torch import Tensor
from torch.nn import functional

from onmt_entmax.sparse.functional import entmax_loss

ROWS = 1280
VOCABULARIES = (776, 18_000, 32_000, 128_000)
LOGITS = ("uniform", "normal", "wide", "trained")
ALPHAS = (1.2, 1.33, 1.5, 2.0)


def backward(loss: Callable[[Tensor, Tensor], Tensor], scores: Tensor, target: Tensor) -> None:
    """One forward and backward pass, the gradient dropped first."""
    scores.grad = None
    loss(scores, target).mean().backward()


def floor(scores: Tensor) -> Tensor:
    """Read the scores once and write zeros of their size."""
    scores.detach().amax()
    return torch.zeros_like(scores)


def declare(parser: argparse.ArgumentParser) -> None:
    """Options that pick rows."""
    parser.add_argument("--vocab", type=int, nargs="+", default=VOCABULARIES)
    parser.add_argument("--logits", choices=LOGITS, nargs="+", default=LOGITS)
    parser.add_argument("--alpha", type=float, nargs="+", default=ALPHAS)
    parser.add_argument("--bisection", action="store_true", help="entmax 1.3's, very slow")


def peers(alpha: float, bisection: bool) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """What entmax 1.3 offers for this alpha."""
    if alpha == 1.5:
        return {"entmax15_k100": partial(peer.entmax15_loss, k=100)}
    if alpha == 2.0:
        return {"sparsemax_k100": partial(peer.sparsemax_loss, k=100)}
    return {"bisect": partial(peer.entmax_bisect_loss, alpha=alpha)} if bisection else {}


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Vocabulary sizes by logits by alphas, those that are asked for."""
    for vocab in arguments.vocab:
        rows = ROWS if vocab < 100_000 else ROWS // 4
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
    given = parse_arguments(__doc__, declare)
    compare(cases(given), given)
