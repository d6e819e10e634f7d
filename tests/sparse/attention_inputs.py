"""Queries, keys, values and masks for the tests of attention, and its slow definition."""

from enum import Enum
from typing import Any

import torch
from torch import Tensor

from tests.oracles import entmax_oracle

INF = float("inf")
# Alpha as cases of tests write it: a number, or one for each head. `alpha_of` makes a tensor of it.
Numbers = float | tuple[float, ...]


class Causal(Enum):
    """The mask that `is_causal` stands for."""

    MASK = "causal"


Mask = Tensor | Causal | None
# Alphas with the kinds of `masks`. Each alpha has two of seven kinds, and each kind several alphas.
# Not all pairs are needed: a mask changes only scores, and alpha only how these are mapped.
ALPHAS_AND_MASKS: list[tuple[Numbers, str]] = [
    (1.0, "none"),
    (1.0, "bias"),
    (1.0001, "causal"),
    (1.0001, "holes"),
    (1.2, "padding"),
    (1.2, "nothing"),
    (1.33, "random"),
    (1.33, "none"),
    (1.5, "bias"),
    (1.5, "causal"),
    (1.9999, "holes"),
    (1.9999, "padding"),
    (2.0, "nothing"),
    (2.0, "random"),
    (2.5, "none"),
    (2.5, "bias"),
    (3.5, "causal"),
    (3.5, "holes"),
    ((1.0, 1.7), "padding"),
    ((1.0, 1.7), "nothing"),
    ((1.5, 2.6), "random"),
    ((1.5, 2.6), "none"),
]


def alpha_of(numbers: Numbers, dtype: torch.dtype = torch.float32) -> float | Tensor:
    """Return alpha as attention takes it: a number, or a tensor with one for each head."""
    return torch.tensor(numbers, dtype=dtype) if isinstance(numbers, tuple) else numbers


def random_tensors(
    *leading: int,
    queries: int = 5,
    keys: int = 7,
    size: int = 4,
    dtype: torch.dtype = torch.float32,
) -> list[Tensor]:
    """Return a random query, key and value.

    Returns:
        ``(*leading, queries, size)``, ``(*leading, keys, size)`` and ``(*leading, keys, 3)``.
    """
    shapes = ((queries, size), (keys, size), (keys, 3))
    return [torch.randn(*leading, *shape, dtype=dtype) for shape in shapes]


def as_leaves(tensors: list[Tensor]) -> list[Tensor]:
    """Return the same tensors, which get gradients from now on."""
    return [tensor.requires_grad_() for tensor in tensors]


def masks(queries: int, keys: int) -> dict[str, Mask]:
    """Return a mask of each kind, for three sentences and two heads.

    Masks of numbers are "bias" and "holes"; the other tensors are booleans. One query has no key in
    "random" and "holes", and no query has one in "nothing".
    """
    padding = torch.arange(keys) < torch.tensor([keys, 2, 4]).view(3, 1, 1, 1)
    random = torch.rand(3, 2, queries, keys) < 0.6
    random[1, 0, 2] = False
    bias = torch.randn(2, queries, keys)
    holes = torch.where(torch.rand(queries, keys) < 0.7, torch.randn(queries, keys), -INF)
    holes[1] = -INF
    return {
        "none": None,
        "causal": Causal.MASK,
        "padding": padding,
        "random": random,
        "bias": bias,
        "holes": holes,
        "nothing": torch.zeros(queries, keys, dtype=torch.bool),
    }


def mask_arguments(mask: Mask) -> dict[str, Any]:
    """Return a mask as arguments of attention."""
    return {"is_causal": True} if isinstance(mask, Causal) else {"attn_mask": mask}


def has_numbers(mask: Mask) -> bool:
    """Return whether a mask is added to the scores, and so has a gradient."""
    return isinstance(mask, Tensor) and mask.is_floating_point()


def weights_oracle(
    query: Tensor, key: Tensor, alpha: Tensor, mask: Mask, scale: float | None = None
) -> Tensor:
    """Return attention weights in float64, by definition.

    Args:
        query: ``(sentences, heads, queries, size)``.
        key: ``(sentences, heads, keys, size)``.
        alpha: one for all heads, or ``(heads,)``.
        mask: mask of the scores.
        scale: factor of the scores; None: one over the root of the size.

    Returns:
        ``(sentences, heads, queries, keys)``; queries without keys have weights of 0.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.double() @ key.double().transpose(-1, -2) * scale
    if isinstance(mask, Causal):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape).masked_fill(~mask, -INF)
    if mask is not None:
        scores = scores + mask.double()
    weights = torch.zeros_like(scores)
    alphas = alpha.detach().double().view(-1, 1).expand(scores.shape[:-1])
    has_keys = ~(scores == -INF).all(-1)
    for number in alphas.unique().tolist():
        rows = has_keys & (alphas == number)
        weights[rows] = entmax_oracle(scores[rows], number)
    return weights
