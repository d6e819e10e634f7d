"""Entmax and attention in C++, for float32 and float64 on a CPU.

It exists where the package was installed with a C++ compiler and ``ONMT_ENTMAX_NATIVE`` is not 0.
``csrc/native_threshold.h`` explains the method, ``csrc/native_anchor.h`` that above alpha 2. Each
row stays in the cache. The mapping reads the scores once and writes once, its gradient reads twice
and writes once.

Attention works on a group of heads at a time, whose scores stay in the cache: a product writes the
scores, one pass in place turns them into weights (csrc/native_rows.h), another product makes the
output. The gradient needs the inputs and the weights; its pass turns gradients in weights into
those in scores.
"""

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import refuse_rows_without_answer, working_type
from onmt_entmax.sparse.inputs import Inputs, Leading

KINDS = {torch.float32: "f", torch.float64: "d"}
# The structs of csrc/native.cpp.
ROWS, HEADS = "d12q", "9q2d6q"
# A support of up to this part of a row is kept.
_ROOM = 32
# The largest alpha, up to which scaled powers of csrc/native_anchor.h stay in float64's range.
LARGEST = 2.0**64


def load(name: str) -> ModuleType | None:
    """Return a C++ extension module of this package, or None without it."""
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module(name)
    except ImportError:
        return None


module: Any = load("onmt_entmax.sparse.backends._native")


def run(function: Callable[..., None], rows: Tensor, layout: str, *values: object) -> None:
    """Run a C++ function on contiguous rows ``(..., n)``.

    Args:
        function: of the module.
        rows: of its type and size.
        layout: of the struct that it takes, for `struct.pack`.
        values: of the struct; tensors become addresses, None becomes 0.
    """
    packed = struct.pack(
        layout, *(x.data_ptr() if isinstance(x, Tensor) else 0 if x is None else x for x in values)
    )
    n = rows.shape[-1]
    function(KINDS[rows.dtype], torch.get_num_threads(), rows.numel() // n, n, packed)


def alphas_of(alpha: Tensor, rows: Tensor) -> Tensor:
    """Return the alphas ``(..., 1)`` of rows one after the other, in float64."""
    return alpha.detach().double().expand(*rows.shape[:-1], 1).contiguous()


def _on_rows(
    function: Callable[..., None], scores: Tensor, alpha: float | Tensor, *values: object
) -> None:
    """Run a C++ function on contiguous rows; see ``Rows`` in csrc/native.cpp for the values."""
    number, alphas = alpha, None
    if isinstance(alpha, Tensor):
        number, alphas = 2.0, alphas_of(alpha, scores)  # the number is not read
    others = (None,) * (10 - len(values))
    try:
        run(function, scores, ROWS, number, alphas, scores, *values, *others)
    except ValueError:
        refuse_rows_without_answer(scores.amax(-1))
        raise


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms; see `reference.mapping`."""
    scores = scores.to(working_type(scores)).contiguous()
    out = torch.empty_like(scores)
    _on_rows(module.map_rows, scores, alpha, out, None, None, logs)
    return out


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities of rows, return shifted conjugates and maxima; see `backends.solve`."""
    shifted, maxima = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    _on_rows(module.map_rows, scores, alpha, out, shifted, maxima)
    return shifted, maxima


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return shifted conjugates, maxima, and what :func:`scaled` needs: small supports."""
    rows, room = len(scores), scores.shape[1] // _ROOM
    shifted, maxima = scores.new_empty(rows), scores.new_empty(rows)
    kept = (
        torch.empty(rows, 2, dtype=torch.float64, device=scores.device),
        torch.empty(rows, dtype=torch.int64, device=scores.device),
        torch.empty(rows, room, dtype=torch.int32, device=scores.device),
        scores.new_empty(rows, room),
    )
    _on_rows(module.map_rows, scores, alpha, None, shifted, maxima, 0, *kept, room)
    return shifted, maxima, (maxima, *kept)


def scaled(
    scores: Tensor, alpha: float | Tensor, kept: Sequence[Tensor], factors: Tensor
) -> Tensor:
    """Return the probabilities of rows times ``factors`` ``(rows,)``; see :func:`conjugate`."""
    out, (maxima, *supports) = torch.empty_like(scores), kept
    room, factors = supports[-1].shape[1], factors.contiguous()
    _on_rows(module.scale_rows, scores, alpha, out, None, maxima, 0, *supports, room, factors)
    return out


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, of_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients in the scores, and with ``of_alpha`` in each row's alpha ``(..., 1)``.

    Args:
        probabilities: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        gradient: in the probabilities.
        of_alpha: whether that in alpha is wanted.
    """
    probabilities = probabilities.contiguous()
    gradient = gradient.to(probabilities.dtype).contiguous()
    alpha = torch.as_tensor(alpha, dtype=torch.float64, device="cpu")
    alphas = alphas_of(alpha, probabilities)
    out = torch.empty_like(probabilities)
    in_alpha = None
    if of_alpha:
        in_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1, dtype=torch.float64)
    # A row is a head of attention with one query, without mask, scale and dropout.
    run(
        module.backward, probabilities, HEADS,
        0, 1, alphas, alphas.numel(), None, 0, 0, 0, 0,
        1.0, 0.0, 0, probabilities, None, gradient, out, in_alpha,
    )  # fmt: skip
    return out, in_alpha


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor | None]]:
    """Return attention ``(..., queries, value size)`` and its weights; without values, the weights.

    The weights are ``(..., queries, keys)``, for :func:`backward`: those that dropout drops are
    negative. Without ``keep`` they are not kept.
    """
    work = _Work(inputs)
    weights = None
    if keep or work.value is None:
        weights = work.new(work.queries, work.keys)
    if inputs.dropout_p > 0:
        work.seed = int(torch.randint(1 << 62, ()))
    output = None if work.value is None else work.new(work.queries, work.value.shape[-1])
    for first, part in work.groups():
        query, key = part(work.query), part(work.key)
        scores = query.new_empty(*query.shape[:2], work.keys) if weights is None else part(weights)
        dropped = torch.empty_like(scores) if inputs.dropout_p > 0 else None
        torch.bmm(query, key.mT, out=scores)
        # In place: from here on the scores are weights.
        work.run(module.forward, first, inputs.scale, scores, dropped, None, None, None)
        if output is not None:
            torch.bmm(scores if dropped is None else dropped, part(work.value), out=part(output))
    kept = None if weights is None else work.shaped(weights)
    result = kept if output is None else work.shaped(output)
    assert result is not None
    return result, (kept,)


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value, alpha and mask; None where they are not wanted.

    Args:
        inputs: those of :func:`forward`.
        kept: its second result.
        gradient: in its first result.
        wanted: for each of the five whether it is.
    """
    work = _Work(inputs)
    weights, gradient = work.of(kept[0]), work.of(gradient)
    wants_alpha, wants_mask = wanted[3], wanted[4]
    # What is multiplied; without values, the gradient in their place is never wanted.
    operands = (inputs.query, inputs.key, gradient if inputs.value is None else inputs.value)
    grads = [
        work.new(*tensor.shape[-2:]) if wants else None
        for tensor, wants in zip(operands, wanted[:3], strict=True)
    ]
    mask_grad = work.new(work.queries, work.keys) if wants_mask else None
    alpha_grad = None
    if wants_alpha:
        alpha_grad = weights.new_empty(work.count, work.queries, dtype=torch.float64)
    # The gradient in the mask is that in the scores, before they are scaled.
    scale = 1.0 if wants_mask else inputs.scale
    for first, part in work.groups():
        own, upstream = part(weights), part(gradient)
        scores_grad = torch.empty_like(own) if mask_grad is None else part(mask_grad)
        dropped = torch.empty_like(own) if inputs.dropout_p > 0 else None
        if work.value is None:
            scores_grad.copy_(upstream)
        else:
            torch.bmm(upstream, part(work.value).mT, out=scores_grad)
        of_alpha = None if alpha_grad is None else alpha_grad[first:]
        work.run(
            module.backward, first, scale, own, dropped, scores_grad, scores_grad, of_alpha
        )  # fmt: skip
        used = own if dropped is None else dropped
        factors = (
            (scores_grad, part(work.key)),
            (scores_grad.mT, part(work.query)),
            (used.mT, upstream),
        )
        for grad, (left, right) in zip(grads, factors, strict=True):
            if grad is not None:
                torch.bmm(left, right, out=part(grad))
    if wants_mask:
        for grad in grads[:2]:
            if grad is not None:
                grad.mul_(inputs.scale)
    in_alpha = None
    if alpha_grad is not None:
        assert isinstance(inputs.alpha, Tensor)
        in_alpha = work.in_alpha(alpha_grad, inputs.alpha)
    tensors = (inputs.query, inputs.key, inputs.value, inputs.mask)
    in_query, in_key, in_value, in_mask = (
        None if grad is None or tensor is None else work.shaped(grad).sum_to_size(tensor.shape)
        for grad, tensor in zip((*grads, mask_grad), tensors, strict=True)
    )
    return in_query, in_key, in_value, in_alpha, in_mask


class _Work(Leading):
    """The inputs as C++ takes them, and the groups of heads.

    Attributes:
        query, key, value: ``(outer, heads, rows, size)``.
        seed: of dropout, which `forward` draws.
    """

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.query, self.key = self.of(inputs.query), self.of(inputs.key)
        self.value = None if inputs.value is None else self.of(inputs.value)
        self.seed = 0
        self._dropout_p = inputs.dropout_p
        alpha = torch.as_tensor(inputs.alpha, dtype=torch.float64, device="cpu")
        self._alpha = alpha.detach().expand(self.heads, 1, 1).contiguous()
        # Of csrc/native.cpp: no mask, causal, booleans, numbers.
        mask, self._kind = inputs.mask, int(inputs.is_causal)
        if mask is not None:
            self._kind = 2 if mask.dtype == torch.bool else 3
            if not mask.dim() or mask.stride(-1) != 1 or mask.shape[-1] == 1:
                # C++ reads adjacent keys; only other dimensions may repeat themselves.
                mask = mask.expand(*mask.shape[:-1], self.keys).contiguous()
            mask = self.of_mask(mask)
        self._mask = mask

    def new(self, rows: int, columns: int) -> Tensor:
        """Return memory ``(outer, heads, rows, columns)``."""
        return self.query.new_empty(self.outer, self.heads, rows, columns)

    def groups(self) -> Iterator[tuple[int, Callable[[Tensor | None], Tensor]]]:
        """Yield groups of some heads of one outer index, or of all heads of several.

        Yields:
            The first head, if all are counted, and a function that takes the group's part
            ``(count, rows, columns)`` of a tensor ``(outer, heads, rows, columns)``.
        """
        scores = self.queries * self.keys * self.query.itemsize
        together = min(max((1 << 19) // scores, 1), self.count)
        step, within = max(together // self.heads, 1), min(together, self.heads)
        for begin in range(0, self.outer, step):
            for first in range(0, self.heads, within):
                outer, heads = slice(begin, begin + step), slice(first, first + within)

                def part(tensor: Tensor | None, outer=outer, heads=heads) -> Tensor:  # type: ignore[no-untyped-def]
                    assert tensor is not None
                    return tensor[outer, heads].flatten(0, 1)

                yield begin * self.heads + first, part

    def run(
        self,
        function: Callable[..., None],
        first: int,
        scale: float,
        weights: Tensor,
        *tensors: Tensor | None,
    ) -> None:
        """Run a pass in C++ over the rows of a group; see ``Heads`` in csrc/native.cpp.

        Args:
            function: of the module.
            first: the first head.
            scale: of the scores, or of the gradient.
            weights: ``(count, queries, keys)``.
            tensors: weights after dropout, incoming gradient, gradient, and gradient in alpha.
        """
        strides = (0, 0, 0) if self._mask is None else self._mask.stride()[:3]
        run(
            function, weights, HEADS,
            first, self.queries, self._alpha, self.heads, self._mask, self._kind, *strides,
            scale, self._dropout_p, self.seed, weights, *tensors,
        )  # fmt: skip
