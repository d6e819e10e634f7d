r"""Find the few tokens that can be in a support by products in bfloat16, at half the cost.

No number leaves here in bfloat16: rough scores choose candidates, whose scores are computed again.
No token of a support is lost. Proof, for a state :math:`h`, the weights :math:`w_t` and biases
:math:`b_t` of the tokens, exact scores :math:`s_t = h \cdot w_t + b_t`, and the window
:math:`W = 1 / (\alpha - 1)`: a token of the support is less than :math:`W` below the largest score.

Let :math:`\tilde h, \tilde w_t` be the factors as the processor reads them: rounded to bfloat16, or
0 if that is below :math:`\tau = 2^{-126}` (its bfloat16 products read subnormal numbers as 0). By
Cauchy-Schwarz

.. math:: |h \cdot w - \tilde h \cdot \tilde w|
          \le \lVert h - \tilde h \rVert \lVert w \rVert
            + \lVert \tilde h \rVert \lVert w - \tilde w \rVert .

Products of such factors are exact in float32, and each of n sums loses at most the share
:math:`2^{-24}` of :math:`\lVert h \rVert \lVert w \rVert`, or :math:`\tau` where it becomes 0. Let
:math:`E` bound all this for every token, and the same again for scores in float32; no sum overflows
if :math:`\lVert h \rVert \lVert w \rVert + |b|` is at most :math:`2^{126}`. The result is rounded
to bfloat16, and the sum with the bias to float32. So the rough score :math:`r_t` has

.. math:: |r_t - s_t| \le E + c \, (|r_t| + B), \qquad B = \max_t |b_t|,

where :math:`c` is little more than :math:`2^{-8}`. Let :math:`M` be the largest rough score. A
token of the support has :math:`s_t > M - E - c (|M| + B) - W`. If :math:`r_t = M - D`, then
:math:`|r_t| \le |M| + D` and

.. math:: (1 - c) D < W + 2 E + 2 c (|M| + B) ,

so that :math:`D < W + 2.02 \, (E + c (|M| + B + W))`. `_SLACK` is larger: the rest is for
:math:`\lVert \tilde h \rVert`, which may be larger than :math:`\lVert h \rVert` by the share
:math:`2^{-8}`, and for rounding in norms, in this bound and in the mapping.
"""

import torch
from torch import Tensor

from onmt_entmax.nn.products import PreparedWeight, nonzero
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import log_entmax

# Weights above which the filter pays, and candidates, as a share of the vocabulary, up to which.
_LEAST_WEIGHTS, _MOST_CANDIDATES = 1 << 22, 1 / 256
# Unit roundoff.
_BFLOAT16, _FLOAT32 = 2.0**-8, 2.0**-24
# Smallest normal number of both, and sums that cannot overflow.
_SMALLEST, _LARGEST = 2.0**-126, 2.0**126
_SLACK = 1.03


def find_by_bfloat16(weight: Tensor, bias: Tensor, alpha: float) -> "Bfloat16Filter | None":
    """Return the filter of an output layer.

    There is none for softmax, few weights, and processors that do not multiply in bfloat16.

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
    return Bfloat16Filter(weight, bias, alpha)


class Bfloat16Filter:
    """Finds the supports of an output layer; see `find_by_bfloat16` for the arguments."""

    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._weight, self._bias, self._alpha = weight, bias, alpha
        self._multiply = PreparedWeight(weight, dtype=torch.bfloat16)
        self._norm, self._lost = (
            torch.stack([part(rows).amax() for rows in weight.split(512)]).amax()
            for part in (_norm, _lost)
        )
        self._largest_bias = bias.abs().amax()

    def __call__(self, hidden: Tensor) -> Support | None:
        """Return the supports given hidden ``(rows, hidden)``.

        None if there are many candidates, when such a product for nothing takes half as long again,
        and where numbers are too large for the bound, or not finite.
        """
        position, vocabulary = self.candidates(hidden), len(self._weight)
        if position is None:
            return None
        row = position // vocabulary
        token = position - row * vocabulary
        exact = torch.linalg.vecdot(hidden[row], self._weight[token]).add_(self._bias[token])
        count = row.bincount(minlength=len(hidden))
        place = torch.arange(len(row)) - (count.cumsum(0) - count)[row]
        among = exact.new_full((len(hidden), int(count.max())), -torch.inf)
        among[row, place] = exact
        log_prob = log_entmax(among, self._alpha)[row, place]
        inside = log_prob > -torch.inf
        return Support(len(hidden), vocabulary, row[inside], token[inside], log_prob[inside])

    def candidates(self, hidden: Tensor) -> Tensor | None:
        """Return the ascending positions of candidates in flattened scores ``(rows, vocabulary)``.

        Every token of a support is among them. None: see `__call__`.
        """
        scores = self._multiply(hidden).add_(self._bias)
        maxima = scores.amax(1, keepdim=True)
        window, norm, size = 1 / (self._alpha - 1), _norm(hidden), hidden.shape[1]
        sums = 4 * size * (_FLOAT32 * norm * self._norm + _SMALLEST)
        factors = _lost(hidden) * self._norm + norm * self._lost + sums
        result = (maxima.abs() + window + self._largest_bias) * (_BFLOAT16 + 4 * _FLOAT32)
        cut = maxima - window - 2 * _SLACK * (factors + result)
        fits = cut.isfinite() & (norm * self._norm + self._largest_bias <= _LARGEST)
        if not (len(hidden) and bool(fits.all())):
            return None
        return nonzero(torch.ge(scores, cut.float(), out=scores), _MOST_CANDIDATES)


def _norm(rows: Tensor) -> Tensor:
    """Return the norm of each row, in float64, whose squares do not underflow."""
    return torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)


def _lost(rows: Tensor) -> Tensor:
    """Return the norm of what each row loses in bfloat16, as a processor reads it at worst."""
    rounded = rows.bfloat16().float()
    return _norm(torch.where(rounded.abs() >= _SMALLEST, rows - rounded, rows))
