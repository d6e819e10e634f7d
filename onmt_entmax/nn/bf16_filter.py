r"""Find the few tokens that can be in a support by products in bfloat16, at half the cost.

For a state :math:`h`, a row of weights :math:`w` and their roundings :math:`\bar h, \bar w`,
Cauchy-Schwarz gives

.. math:: |h \cdot w - \bar h \cdot \bar w|
          \le \lVert h - \bar h \rVert \lVert w \rVert
            + \lVert \bar h \rVert \lVert w - \bar w \rVert ,

to which come the rounding of the sums and that of the result. Let :math:`\delta` bound their total
near the largest score. A token of the support is less than :math:`1 / (\alpha - 1)` below the
largest score, so its rough score is less than :math:`1 / (\alpha - 1) + 2 \delta` below the largest
rough one. The scores of these tokens are computed again: no number leaves here in bfloat16.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from onmt_entmax.nn.products import PreparedWeight, nonzero
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import log_entmax

# Weights above which the filter pays, and candidates, as a share of the vocabulary, up to which.
_LEAST_WEIGHTS, _MOST_CANDIDATES = 1 << 22, 1 / 256
# Unit roundoff.
_BFLOAT16, _FLOAT32 = 2.0**-8, 2.0**-24
# Norms are rounded too, that of a rounded state may be larger by `_BFLOAT16`, and the result that
# is rounded may differ by it from the one that is known.
_SLACK = 1.03


def find_by_bfloat16(
    weight: Tensor, bias: Tensor, alpha: float
) -> Callable[[Tensor], Support | None] | None:
    """Return a function from hidden ``(rows, hidden)`` to the supports of an output layer.

    It returns None for many candidates: such a product for nothing takes half as long again. There
    is none for softmax, few weights, and processors that do not multiply in bfloat16.

    Args:
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        alpha: a number >= 1.
    """
    instructions = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    is_fast = any(getattr(torch.cpu, name, bool)() for name in instructions)
    on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    if not (is_fast and on_cpu and alpha > 1 and weight.numel() >= _LEAST_WEIGHTS):
        return None
    rough, (vocabulary, size) = PreparedWeight(weight, dtype=torch.bfloat16), weight.shape
    norm, lost = (
        torch.stack([part(rows).amax() for rows in weight.split(512)]).amax()
        for part in (_norm, _lost)
    )
    window, largest_bias = 1 / (alpha - 1), bias.abs().amax()

    def find(hidden: Tensor) -> Support | None:
        scores = rough(hidden).add_(bias)
        maxima = scores.amax(1, keepdim=True)
        factors = _lost(hidden) * norm + _norm(hidden) * (lost + 4 * size * _FLOAT32 * norm)
        result = (maxima.abs() + window + largest_bias) * (_BFLOAT16 + 4 * _FLOAT32)
        cut = maxima - window - 2 * _SLACK * (factors + result)
        if not (len(hidden) and bool(cut.isfinite().all())):
            return None
        position = nonzero(torch.ge(scores, cut.float(), out=scores), _MOST_CANDIDATES)
        if position is None:
            return None
        row = position // vocabulary
        token = position - row * vocabulary
        exact = torch.linalg.vecdot(hidden[row], weight[token]).add_(bias[token])
        count = row.bincount(minlength=len(hidden))
        place = torch.arange(len(row)) - (count.cumsum(0) - count)[row]
        among = exact.new_full((len(hidden), int(count.max())), -torch.inf)
        among[row, place] = exact
        log_prob = log_entmax(among, alpha)[row, place]
        inside = log_prob > -torch.inf
        return Support(len(hidden), vocabulary, row[inside], token[inside], log_prob[inside])

    return find


def _norm(rows: Tensor) -> Tensor:
    """Return the norm of each row, in float64, whose squares do not underflow."""
    return torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)


def _lost(rows: Tensor) -> Tensor:
    """Return the norm of what each row loses in bfloat16."""
    return _norm(rows - rows.bfloat16())
