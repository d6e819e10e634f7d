"""Time the mapping, forward and backward, against softmax and entmax 1.3 (the reference).

    python -m tools.bench.mapping --clock cpu

Rows are small, as in attention, or whole vocabularies.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import entmax as peer
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax
from tools.bench.runner import Case, logits, run

SHAPES = ((64, 13), (64, 50), (2048, 50), (1280, 776), (320, 18_000), (320, 32_000), (80, 128_000))


def backward(mapping: Callable[[Tensor], Tensor], scores: Tensor, gradient: Tensor) -> None:
    """Run forward and backward once, without an earlier gradient."""
    scores.grad = None
    mapping(scores).backward(gradient)


def reference(alpha: float) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return the function of entmax 1.3 for this alpha."""
    if alpha == 1.5:
        return {"entmax15": partial(peer.entmax15, dim=-1)}
    if alpha == 2.0:
        return {"sparsemax": partial(peer.sparsemax, dim=-1)}
    return {"bisect": partial(peer.entmax_bisect, alpha=alpha, dim=-1)}


def cases(_: argparse.Namespace) -> Iterator[Case]:
    """Yield shapes, logits and alphas."""
    for rows, length in SHAPES:
        for kind in ("uniform", "normal", "wide", "trained"):
            scores = logits(kind, rows, length).requires_grad_()
            gradient = torch.randn(rows, length)
            for alpha in (1.2, 1.33, 1.5, 2.0):
                mappings: dict[str, Callable[[Tensor], Tensor]] = {
                    **reference(alpha),
                    "ours": partial(entmax, alpha=alpha),
                    "softmax": partial(torch.softmax, dim=-1),
                }
                yield Case(
                    {"shape": f"{rows}x{length}", "logits": kind, "alpha": alpha},
                    {name: partial(backward, m, scores, gradient) for name, m in mappings.items()},
                )


if __name__ == "__main__":
    run(__doc__, cases)
