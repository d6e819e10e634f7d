"""Time the mapping, forward and backward, against softmax and entmax 1.3 (the reference).

    python -m tools.bench.mapping --clock cpu
    python -m tools.bench.mapping --clock cpu --shape 1280x40 256x1000 --alpha 2.25 3 10

A line is a case: a shape, a kind of logits and an alpha. Rows are short, as in attention, or whole
vocabularies. The reference is the fastest function of entmax 1.3 for the alpha: `entmax15`,
`sparsemax`, or bisection for others and for a tensor of alphas.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import entmax as peer
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax
from tools.bench.arguments import ALPHA
from tools.bench.cases import Case
from tools.bench.runner import run
from tools.bench.scores import logits

Mapping = Callable[[Tensor], Tensor]  # of scores to probabilities, in the last dimension

SHAPES = ("64x13", "64x50", "2048x50", "1280x776", "320x18000", "320x32000", "80x128000")
ALPHAS = (1.2, 1.33, 1.5, 2.0)


def backward(mapping: Mapping, scores: Tensor, gradient: Tensor) -> None:
    """Run forward and backward once, without an earlier gradient.

    Args:
        mapping: maps scores to probabilities.
        scores: `(rows, classes)`, which get a gradient.
        gradient: gradient with respect to the probabilities, `(rows, classes)`.
    """
    scores.grad = None
    mapping(scores).backward(gradient)


def reference(alpha: float | Tensor) -> dict[str, Mapping]:
    """Return the function of entmax 1.3 for an alpha, or for alphas `(rows, 1)`, by its name."""
    if not isinstance(alpha, Tensor):
        if alpha == 1.5:
            return {"entmax15": partial(peer.entmax15, dim=-1)}
        if alpha == 2.0:
            return {"sparsemax": partial(peer.sparsemax, dim=-1)}
    return {"bisect": partial(peer.entmax_bisect, alpha=alpha, dim=-1)}


class Shape(NamedTuple):
    """The shape of scores."""

    rows: int
    classes: int


def shape(text: str) -> Shape:
    """Return the shape that a text such as 64x13 names: rows, then classes."""
    match = re.fullmatch(r"([1-9]\d{0,8})x([1-9]\d{0,8})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not rows and their length, such as 64x13")
    return Shape(int(match[1]), int(match[2]))


def declare(parser: argparse.ArgumentParser) -> None:
    """Add options that choose rows and alphas."""
    parser.add_argument(
        "--shape",
        type=shape,
        nargs="+",
        default=[shape(text) for text in SHAPES],
        help=f"rows and classes (default: {' '.join(SHAPES)})",
    )
    alphas = " ".join(f"{alpha:g}" for alpha in ALPHAS)
    parser.add_argument("--alpha", type=ALPHA, nargs="+", default=ALPHAS, help=f"default: {alphas}")
    parser.add_argument("--each-row", action="store_true", help="pass a tensor, an alpha a row")
    parser.add_argument("--double", action="store_true", help="time float64")


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield a case for each shape, kind of logits and alpha."""
    dtype = torch.float64 if arguments.double else torch.float32
    for rows, classes in arguments.shape:
        for kind in ("uniform", "normal", "wide", "trained"):
            scores = logits(kind, rows, classes).to(dtype).requires_grad_()
            gradient = torch.randn(rows, classes).to(dtype)
            for alpha in arguments.alpha:
                alphas = torch.full((rows, 1), alpha, dtype=dtype) if arguments.each_row else alpha
                mappings: dict[str, Mapping] = {
                    **reference(alphas),
                    "ours": partial(entmax, alpha=alphas),
                    "softmax": partial(torch.softmax, dim=-1),
                }
                contenders = {
                    name: partial(backward, mapping, scores, gradient)
                    for name, mapping in mappings.items()
                }
                conditions = {"shape": f"{rows}x{classes}", "logits": kind, "alpha": alpha}
                yield Case(conditions, contenders)


if __name__ == "__main__":
    run(__doc__, cases, declare)
