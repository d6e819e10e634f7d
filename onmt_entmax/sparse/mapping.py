r"""Entmax and its logarithm, for any alpha from 1 (softmax) upwards.

Sources: Martins and Astudillo (2016); Peters, Niculae and Martins (2019); for the gradient with
respect to alpha, Correia, Niculae and Martins (2019).

From the user's call to a backend:

    entmax, log_entmax      what users call
    _checked_and_mapped     any shape and dimension; softmax at alpha 1; the type that users get
    _map_rows               rows (..., n): computes them, or lets PyTorch trace, export or compile
    _Mapping, _operator     add gradients: for autograd, and in the one operator that compilers see
    _solve                  calls the backend's solver of rows

The last three take alpha as two arguments, since an operator's arguments have fixed types:
`number`, and `alphas`, a tensor ``(..., 1)``, which replaces the number unless it is None.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse import backends, reference, traced
from onmt_entmax.sparse.arguments import alpha_of_rows, refuse_rows_of_minus_infinity
from onmt_entmax.sparse.precision import returned_type, round_on_support, working_type
from onmt_entmax.sparse.recording import has_values, is_empty, is_readable_now


def entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    r"""Map scores to probabilities by alpha-entmax, with exact zeros when alpha is above 1.

    .. math:: \arg\max_p \; p^\top z + H_\alpha(p), \qquad p \text{ a distribution}

    with the Tsallis entropy of :func:`tsallis_entropy` (Peters, Niculae and Martins 2019,
    equation 10): softmax at 1, 1.5-entmax at 1.5, sparsemax at 2. A score of -inf, or more than
    1 / (alpha - 1) below the largest, gets an exact 0. Every score in the support gets a positive
    number, at least the smallest of the type; only if alpha is the number 1 may it round to 0, as
    in PyTorch's softmax. Gradients of gradients work; forward mode and the transforms of
    `torch.func` (vmap, jacrev) do not. Compilers see one operator. Traces (`torch.jit.trace`) and
    ONNX files have plain operations instead, which are slower and have first derivatives only.

    Args:
        scores: any shape, floating point; float16 and bfloat16 are computed in float32.
        alpha: a number >= 1, or a tensor of such numbers that broadcasts to ``scores`` with size 1
            in ``dim``, for example ``(heads, 1, 1)`` for ``(batch, heads, queries, keys)``. A
            tensor may be a parameter and gets its gradient, at alpha = 1 too; keep it above 1, for
            example as ``1 + sigmoid(a)`` (Correia, Niculae and Martins 2019). On a GPU, a tensor
            is read, and PyTorch solves alphas above 2; both wait for the GPU.
        dim: the dimension to normalise.

    Returns:
        Probabilities, the shape and type of ``scores``; under autocast float32, on a CPU too, and
        float64 for such scores.

    Raises:
        ValueError: if alpha is below 1 or does not broadcast, the scores are not floating point, or
            a row is all -inf (at alpha = 1 too, where PyTorch's softmax returns nan). On a GPU, a
            wrong tensor of alphas and rows of -inf give nan instead.
        IndexError: if ``dim`` does not exist.
    """
    return _checked_and_mapped(scores, alpha, dim, logs=False)


def log_entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    """Return the natural logarithm of :func:`entmax`.

    It is -inf exactly where entmax is 0. If alpha is the number 1 (softmax), it is -inf only where
    the score is. It is computed from the difference between score and threshold, so it has all its
    digits where a probability is too small for its type. In float16 no finite value is below
    -65504. Gradients that arrive for an entry of -inf are ignored.

    Args, returns and raises: as :func:`entmax`.
    """
    return _checked_and_mapped(scores, alpha, dim, logs=True)


def _checked_and_mapped(scores: Tensor, alpha: float | Tensor, dim: int, logs: bool) -> Tensor:
    """Return entmax or its logarithm, with the arguments, result and errors of :func:`entmax`."""
    dtype = working_type(scores)
    dimensions = scores.dim()
    if not dimensions:
        return _checked_and_mapped(scores.unsqueeze(0), alpha, dim, logs).squeeze(0)
    if not -dimensions <= dim < dimensions:
        raise IndexError(f"dim must be from {-dimensions} to {dimensions - 1}, got {dim}")
    alpha = alpha_of_rows(alpha, scores, dim)
    is_last = dim in (-1, dimensions - 1)
    rows = scores if is_last else scores.movedim(dim, -1)
    if is_empty(rows):
        result = rows.to(dtype, copy=True)
    elif isinstance(alpha, Tensor):
        alphas = alpha if is_last else alpha.movedim(dim, -1)
        result = _map_rows(rows, 0.0, alphas, logs)
    elif alpha > 1:
        result = _map_rows(rows, alpha, None, logs)
    else:
        result = _softmax(rows, dtype, logs)
    if not is_last:
        result = result.movedim(-1, dim).contiguous()
    is_softmax = not isinstance(alpha, Tensor) and alpha == 1
    return _with_same_support(result, returned_type(scores), logs, is_softmax)


def _with_same_support(result: Tensor, dtype: torch.dtype, logs: bool, is_softmax: bool) -> Tensor:
    """Return probabilities, or their logarithms, in another type, with the same support.

    Args:
        result: probabilities or logarithms, in any shape.
        dtype: type of the result.
        logs: whether they are logarithms.
        is_softmax: whether alpha is the number 1; only then may a probability round to 0.
    """
    if result.dtype == dtype:
        return result
    if logs:
        finite = result.clamp_min(torch.finfo(dtype).min)
        return torch.where(result == -torch.inf, -torch.inf, finite).to(dtype)
    return result.to(dtype) if is_softmax else round_on_support(result, result > 0, dtype)


def _softmax(rows: Tensor, dtype: torch.dtype, logs: bool) -> Tensor:
    """Return PyTorch's softmax over the last dimension, or its logarithm.

    Args:
        rows: scores ``(..., n)``.
        dtype: type of the result, in which it is also computed.
        logs: whether to return the logarithm.

    Raises:
        ValueError: if a row is -inf everywhere (nan on a GPU).
    """
    result = (torch.log_softmax if logs else torch.softmax)(rows, -1, dtype)
    if is_readable_now(result) and bool(result[..., 0].isnan().any()):
        refuse_rows_of_minus_infinity(rows.detach().amax(-1))
    if logs and result.requires_grad:
        # Stop gradients that arrive for -inf: times the probability 0, they could be nan.
        result = torch.where(result == -torch.inf, -torch.inf, result)
    return result


def _solve(scores: Tensor, number: float, alphas: Optional[Tensor], logs: bool) -> Tensor:  # noqa: UP045
    """Return probabilities of rows ``(..., n)``, or their logarithms.

    `torch.library` reads the annotations, and needs this form of them.

    Args:
        scores: rows ``(..., n)``.
        number: alpha of all rows, unless there are alphas.
        alphas: an alpha for each row, ``(..., 1)``, or None.
        logs: whether to return logarithms.
    """
    alpha = number if alphas is None else alphas
    return backends.backend_for(scores, alpha).mapping(scores, alpha, logs)


class _Mapping(Function):
    """Entmax over the last dimension, or its logarithm, in float32 or float64.

    ``apply(scores, number, alphas, logs)`` with scores ``(..., n)`` and alphas ``(..., 1)`` or
    None. It saves its own output, which supports double backward.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        output = _solve(*inputs)
        _Mapping.keep(ctx, inputs, output)
        return output

    @staticmethod
    def keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save what the gradient needs. `_operator` calls this, too, after `_solve`."""
        scores, ctx.number, alphas, ctx.logs = inputs
        ctx.dtype = scores.dtype
        ctx.save_for_backward(output, alphas)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        result, alphas = ctx.saved_tensors
        alpha = ctx.number if alphas is None else alphas
        wants_alpha = ctx.needs_input_grad[2]
        (gradient,) = upstream
        grad_scores, grad_alpha = mapping_gradients(result, alpha, gradient, wants_alpha, ctx.logs)
        if grad_alpha is not None:
            grad_alpha = grad_alpha.to(alphas.dtype)
        return grad_scores.to(ctx.dtype), None, grad_alpha, None


def mapping_gradients(
    result: Tensor, alpha: float | Tensor, gradient: Tensor, wants_alpha: bool, logs: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients with respect to scores and alpha, as `derivatives.gradients` does.

    The reference computes them for logarithms. It also computes them while autograd records a
    graph, since its operations can be differentiated again.

    Args, returns: as `derivatives.gradients`; but a backend may compute in the type of `result`.
    """
    if logs or torch.is_grad_enabled():
        return reference.gradients(result, alpha, gradient, wants_alpha, logs)
    backend = backends.backend_for(result, alpha, gradient)
    grad_scores, grad_alpha = backend.gradients(result, alpha, gradient, wants_alpha)
    return grad_scores, grad_alpha


# Compilers see one opaque operator, since the number of steps to a solution depends on the scores,
# and a compiled graph cannot depend on these.
_operator = torch.library.custom_op("onmt_entmax::mapping", _solve, mutates_args=())
_operator.register_autograd(_Mapping.backward, setup_context=_Mapping.keep)


@_operator.register_fake
def _solve_shape(
    scores: Tensor,
    number: float,
    alphas: Tensor | None,
    logs: bool,
) -> Tensor:
    """Return a tensor in the shape and the type of `_solve`'s result, for compilers."""
    return torch.empty_like(
        scores, dtype=working_type(scores), memory_format=torch.contiguous_format
    )


def _map_rows(rows: Tensor, number: float, alphas: Tensor | None, logs: bool) -> Tensor:
    """Map rows in a way that PyTorch can compute, trace, export or compile, whichever it does now.

    Args, returns: as `_solve`.
    """
    alpha = number if alphas is None else alphas
    if torch.jit.is_tracing():
        return traced.mapping(rows, alpha, logs)
    if has_values(rows):
        return _Mapping.apply(rows, number, alphas, logs)
    # An ONNX file cannot hold our operator. A decomposition of it, registered with PyTorch, would
    # also solve that, but then torch.compile refuses the operator if the environment variable CI is
    # set. PyTorch is asked, since `recording.is_in_onnx_export` is False while dynamo compiles.
    if torch.onnx.is_in_onnx_export():
        return traced.mapping(rows, alpha, logs)
    return _operator(rows, number, alphas, logs)
