r"""Candidate filtering in bfloat16: find the tokens that can be in the support at half the cost.

Processors with bfloat16 instructions multiply twice as fast as in float32. For a state :math:`h`, a
row of weights :math:`w` and their roundings :math:`\bar h, \bar w`, Cauchy-Schwarz gives

.. math:: |h \cdot w - \bar h \cdot \bar w|
          \le \lVert h - \bar h \rVert \lVert w \rVert
            + \lVert \bar h \rVert \lVert w - \bar w \rVert .

Float32 sums and the rounding of the result add terms of their own; let :math:`\delta` be the total.
The entmax threshold grows with every score and shifts with all of them, so the threshold of the
bfloat16 scores minus :math:`\delta` is a lower bound, and a token whose bfloat16 score lies
:math:`2 \delta` below that threshold is outside the support. The scores of all other tokens are
recomputed in float32: no returned number comes from bfloat16.
"""

import warnings
from functools import cache

import torch
from torch import Tensor

from onmt_entmax.nn.products import PreparedWeight
from onmt_entmax.sparse.candidates import MEDIUM, Candidates, lower_bound, select
from onmt_entmax.sparse.solvers import has_power_form

# Below this many weights, filtering costs more than it saves.
_LEAST_WEIGHTS = 1 << 22
# Rows of weights whose rounding errors are computed together.
_ROWS_AT_ONCE = 512
# Above this mean number of candidates a row, recomputing them costs more than filtering saves.
_MOST_CANDIDATES = 64
# Unit roundoff of bfloat16 and float32.
_BF16_ROUNDOFF, _FP32_ROUNDOFF = 2.0**-8, 2.0**-24


@cache
def has_fast_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16 and `scores_at` works in this PyTorch."""
    if not torch.backends.mkldnn.is_available():
        return False
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    if not any(getattr(torch.cpu, name, bool)() for name in names):
        return False
    hidden, weight = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns once that sparse matrices are in beta
            found = scores_at(hidden, weight, torch.ones(4), *torch.tensor([[0, 1, 1], [3, 0, 2]]))
    except RuntimeError:
        return False
    return found.tolist() == [33.0, 15.0, 87.0]


def is_worthwhile(weight: Tensor, alpha: float) -> bool:
    """Whether to filter: many float32 weights, a sparse output, a processor with fast bfloat16."""
    return (
        weight.numel() >= _LEAST_WEIGHTS
        and weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and (has_power_form(alpha) or alpha > 2)
        and bool(torch.backends.mkldnn.enabled)  # PyTorch's own switch
        and has_fast_bfloat16()
    )


def scores_at(hidden: Tensor, weight: Tensor, bias: Tensor, row: Tensor, token: Tensor) -> Tensor:
    """Scores of chosen tokens, in the weights' type; without autograd.

    Args:
        hidden: ``(rows, hidden)``.
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        row: ``(k,)`` int64, ascending.
        token: ``(k,)`` int64.

    Returns:
        ``(k,)``.
    """
    begins = torch.zeros(len(hidden) + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(row, minlength=len(hidden)), 0, out=begins[1:])
    places = torch.sparse_csr_tensor(
        begins,
        token,
        torch.zeros(len(token), dtype=weight.dtype),
        (len(hidden), len(weight)),
        check_invariants=False,
    )
    product = torch.sparse.sampled_addmm(places, hidden, weight.t(), beta=0.0).values()
    return product.add_(bias[token])


class Bf16Filter:
    """Finds the tokens that can be in the support of an output layer's rows.

    Args:
        weight: ``(vocabulary, hidden)`` float32, on the CPU; must not change afterwards.
        bias: ``(vocabulary,)``.
        alpha: a number; see `is_worthwhile`.
    """

    @torch.no_grad()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._weight, self._bias, self._alpha = weight.detach(), bias.detach(), alpha
        self._product = PreparedWeight(self._weight, dtype=torch.bfloat16)
        # The norms below, and what is computed from them, are rounded too.
        self._slack = 1 + 4 * weight.shape[1] * _FP32_ROUNDOFF
        lost = [_rounding_error(rows).amax() for rows in self._weight.split(_ROWS_AT_ONCE)]
        self._weight_error = float(torch.stack(lost).amax()) * self._slack
        self._weight_norm = float(torch.linalg.vector_norm(self._weight, dim=1).amax())
        self._weight_norm *= self._slack
        self._largest_bias = float(self._bias.abs().amax())

    def candidates(self, hidden: Tensor) -> Candidates | None:
        """Find the tokens that can be in the support, with their float32 scores.

        Args:
            hidden: ``(rows, hidden)`` float32; without autograd.

        Returns:
            None if they are too many to be worth recomputing, or a score is not finite.
        """
        scores = self._product(hidden).add_(self._bias)
        limits = lower_bound(scores, self._alpha)
        if limits is None:
            return None
        block_maxima, maxima, bound = limits
        bound = bound - 2 * self._score_error(hidden, maxima)
        found = select(scores, block_maxima, maxima, bound)
        if found is None or found.scores.shape[1] >= MEDIUM:
            return None
        if len(found.row) > _MOST_CANDIDATES * len(hidden):
            return None
        token = found.position - found.row * len(self._weight)
        exact = scores_at(hidden, self._weight, self._bias, found.row, token)
        found.scores.view(-1).scatter_(0, found.slot, exact)
        return found

    def _score_error(self, hidden: Tensor, maxima: Tensor) -> Tensor:
        """Bound ``(rows, 1)`` of the error of bfloat16 scores near the largest of each row.

        Scores far below may exceed it, by the rounding of the result only. That grows more slowly
        than their distance from the maximum, so they stay outside the support.
        """
        rounded_norm = torch.linalg.vector_norm(hidden.bfloat16().float(), dim=1, keepdim=True)
        norm = torch.linalg.vector_norm(hidden, dim=1, keepdim=True)
        lost = _rounding_error(hidden).unsqueeze(1)
        factors = lost * self._weight_norm + rounded_norm * self._weight_error
        # Two float32 sums of products, in any order: that in bfloat16, and that of `scores_at`.
        magnitude = rounded_norm * (self._weight_norm + self._weight_error)
        magnitude = magnitude + norm * self._weight_norm
        sums = magnitude * (2 * hidden.shape[1] * _FP32_ROUNDOFF)
        # A score near the largest, minus its bias, is the product that is rounded to bfloat16.
        # Adding the bias rounds in float32, once for each kind of score.
        largest_product = maxima.abs() + (1 / (self._alpha - 1) + self._largest_bias)
        result = largest_product * (_BF16_ROUNDOFF + 4 * _FP32_ROUNDOFF)
        return (factors + sums + result) * (self._slack / (1 - 4 * _BF16_ROUNDOFF)) + 1e-30


def _rounding_error(matrix: Tensor) -> Tensor:
    """Norms of what each row loses in bfloat16."""
    return torch.linalg.vector_norm(matrix - matrix.bfloat16().float(), dim=1)
