r"""A product in bfloat16 as a screen: the few scores that can be in the support, made exactly.

On processors with instructions for bfloat16 its product takes half the time of that in float32. Of
a state :math:`h`, a row of weights :math:`w` and their roundings :math:`\bar h, \bar w`,

.. math:: |h \cdot w - \bar h \cdot \bar w|
          \le \lVert h - \bar h \rVert \lVert w \rVert
            + \lVert \bar h \rVert \lVert w - \bar w \rVert

by the inequality of Cauchy and Schwarz; the sums in float32 and the rounding of the result have
bounds of their own. Let :math:`\delta` be the sum of these, for a row. The threshold of entmax
grows with every score and moves along when all of them move, so that of the screened scores, less
:math:`\delta`, is a lower bound, and no token that is screened :math:`2 \delta` below the threshold
can be in the support. What is left is computed again in float32, and nothing that is returned comes
from bfloat16.
"""

import warnings
from functools import cache

import torch
from torch import Tensor

from onmt_entmax.nn.products import PreparedWeight
from onmt_entmax.sparse.solvers import MEDIUM, Candidates, has_power_form, lower_bound, select

# Weights from which a screen pays; rows of weights whose rounding is looked at at once; candidates
# of a row, on average, above which it does not pay to make them again.
_LEAST_WEIGHTS = 1 << 22
_AT_ONCE = 512
_MOST_CANDIDATES = 64
# Unit roundoff of bfloat16 and float32.
_HALF, _SINGLE = 2.0**-8, 2.0**-24


@cache
def _has_fast_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16, and PyTorch has products at chosen places."""
    if not torch.backends.mkldnn.is_available():
        return False
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    if not any(getattr(torch.cpu, name, bool)() for name in names):
        return False
    hidden, weight = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch says once that sparse matrices are young
            found = scores_at(hidden, weight, torch.ones(4), *torch.tensor([[0, 1, 1], [3, 0, 2]]))
    except RuntimeError:
        return False
    return found.tolist() == [33.0, 15.0, 87.0]


def scores_at(hidden: Tensor, weight: Tensor, bias: Tensor, row: Tensor, token: Tensor) -> Tensor:
    """Scores (k,) of chosen tokens, in the type of the weights; no autograd.

    Args:
        hidden: (rows, hidden).
        weight: (vocabulary, hidden).
        bias: (vocabulary,).
        row: (k,) int64, ascending.
        token: (k,) int64.
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


class Screen:
    """The weights of an output layer, prepared for screening.

    Args:
        weight: (vocabulary, hidden) float32, on a CPU.
        bias: (vocabulary,).
        alpha: a number; see :func:`pays`.
    """

    @torch.no_grad()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._weight, self._bias, self._level = weight.detach(), bias.detach(), 1 / (alpha - 1)
        self._alpha = alpha
        self._product = PreparedWeight(self._weight, dtype=torch.bfloat16)
        residues = [_rounding(part).amax() for part in self._weight.split(_AT_ONCE)]
        # Norms are rounded too; so is whatever is computed from them.
        slack = 1 + 4 * weight.shape[1] * _SINGLE
        self._residue = float(torch.stack(residues).amax()) * slack
        self._norm = float(torch.linalg.vector_norm(self._weight, dim=1).amax()) * slack
        self._slack = slack
        self._largest_bias = float(self._bias.abs().amax())

    def candidates(self, hidden: Tensor) -> Candidates | None:
        """The tokens that can be in the support of rows, with their scores in float32.

        Args:
            hidden: (rows, hidden) float32; no autograd.

        Returns:
            None if they are too many to be worth it, or a score is not finite.
        """
        scores = self._product(hidden).add_(self._bias)
        limits = lower_bound(scores, self._alpha)
        if limits is None:
            return None
        block_maxima, maxima, bound = limits
        bound = bound - 2 * self._error(hidden, maxima)
        found = select(scores, block_maxima, maxima, bound)
        if found is None or found.scores.shape[1] >= MEDIUM:
            return None
        if len(found.row) > _MOST_CANDIDATES * len(hidden):
            return None
        token = found.position - found.row * len(self._weight)
        exact = scores_at(hidden, self._weight, self._bias, found.row, token)
        found.scores.view(-1).scatter_(0, found.slot, exact)
        return found

    def _error(self, hidden: Tensor, maxima: Tensor) -> Tensor:
        """A bound (rows, 1) of the differences between screened scores and those in float32.

        Of scores near the largest; those of others may be larger by the rounding of the product
        only, which grows slower than the scores do.
        """
        rounded = torch.linalg.vector_norm(hidden.bfloat16().float(), dim=1, keepdim=True)
        whole = torch.linalg.vector_norm(hidden, dim=1, keepdim=True)
        factors = _rounding(hidden).unsqueeze(1) * self._norm + rounded * self._residue
        # Two sums of products in float32, in any order, and two of a bias.
        size = hidden.shape[1]
        sums = (rounded * (self._norm + self._residue) + whole * self._norm) * (2 * size * _SINGLE)
        reach = maxima.abs() + (self._level + self._largest_bias)
        rounding = reach * (_HALF + 4 * _SINGLE)
        return (factors + sums + rounding) * (self._slack / (1 - 4 * _HALF)) + 1e-30


def _rounding(matrix: Tensor) -> Tensor:
    """Norms of what is lost of the rows of a matrix in bfloat16."""
    return torch.linalg.vector_norm(matrix - matrix.bfloat16().float(), dim=1)


def pays(weight: Tensor, alpha: float) -> bool:
    """Whether a screen may be used: large float32 weights, a sparse output, a fast bfloat16."""
    return (
        weight.numel() >= _LEAST_WEIGHTS
        and weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and (has_power_form(alpha) or alpha > 2)
        and bool(torch.backends.mkldnn.enabled)  # PyTorch's own switch
        and _has_fast_bfloat16()
    )
