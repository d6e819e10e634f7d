"""Forward and backward of the loss against cross-entropy (the reference) and entmax 1.3.

The floor is one pass over the scores and one over a gradient of their size.
"""

from collections.abc import Callable, Iterator
from functools import partial

import entmax as peer
import torch
from runner import Case, compare, logits, parse_arguments
from torch import Tensor
from torch.nn import functional

from onmt_entmax.losses import entmax_loss

ROWS = 1280


def backward(loss: Callable[[Tensor, Tensor], Tensor], scores: Tensor, target: Tensor) -> None:
    """One forward and backward pass, the gradient dropped first."""
    scores.grad = None
    loss(scores, target).mean().backward()


def floor(scores: Tensor) -> Tensor:
    """Read the scores once and write zeros of their size."""
    scores.detach().amax()
    return torch.zeros_like(scores)


def peers(alpha: float) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """What entmax 1.3 offers for this alpha."""
    if alpha == 1.5:
        return {"entmax15_k100": partial(peer.entmax15_loss, k=100)}
    if alpha == 2.0:
        return {"sparsemax_k100": partial(peer.sparsemax_loss, k=100)}
    return {"bisect": partial(peer.entmax_bisect_loss, alpha=alpha)}


def cases() -> Iterator[Case]:
    """Vocabulary sizes by logits by alphas."""
    for vocab in (776, 18_000, 32_000, 128_000):
        rows = ROWS if vocab < 100_000 else ROWS // 4
        for kind in ("uniform", "normal", "wide", "trained"):
            scores = logits(kind, rows, vocab).requires_grad_()
            target = scores.argmax(1) if kind == "trained" else torch.randint(vocab, (rows,))
            for alpha in (1.2, 1.33, 1.5, 2.0):
                losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
                    "cross_entropy": functional.cross_entropy,
                    "ours": partial(entmax_loss, alpha=alpha),
                    **peers(alpha),
                }
                runs: dict[str, Callable[[], object]] = {
                    name: partial(backward, loss, scores, target) for name, loss in losses.items()
                }
                runs["floor"] = partial(floor, scores)
                yield Case({"V": vocab, "logits": kind, "alpha": alpha}, runs)


if __name__ == "__main__":
    compare(cases(), parse_arguments(__doc__))
