r"""Find the tokens that can be in a support by bfloat16 products, at half the cost of float32.

Rough scores in bfloat16 choose candidates, whose scores are computed again in float32, so no number
of the result is rough. No token of a support is lost. The proof is for a state :math:`h`, weights
:math:`w_t` and biases :math:`b_t` of the tokens, exact scores :math:`s_t = h \cdot w_t + b_t`, and
the window :math:`W = 1 / (\alpha - 1)`. A token of the support is less than :math:`W` below the
largest score.

Let :math:`\tilde h, \tilde w_t` be the factors as the processor reads them: rounded to bfloat16, or
0 if that is below :math:`\tau = 2^{-126}` (its bfloat16 products read subnormal numbers as 0). By
Cauchy-Schwarz

.. math:: |h \cdot w - \tilde h \cdot \tilde w|
          \le \lVert h - \tilde h \rVert \lVert w \rVert
            + \lVert \tilde h \rVert \lVert w - \tilde w \rVert .

Products of such factors are exact in float32, and each of n sums loses at most the share
:math:`2^{-24}` of :math:`\lVert h \rVert \lVert w \rVert`, or :math:`\tau` where it becomes 0. Let
:math:`E` bound these errors for every token, and those of scores in float32. No sum overflows if
:math:`\lVert h \rVert \lVert w \rVert + |b|` is at most :math:`2^{126}`. The result is rounded to
bfloat16, and the sum with the bias to float32. So the rough score :math:`r_t` has

.. math:: |r_t - s_t| \le E + c \, (|r_t| + B), \qquad B = \max_t |b_t|,

where :math:`c` is little more than :math:`2^{-8}`. Let :math:`M` be the largest rough score. A
token of the support has :math:`s_t > M - E - c (|M| + B) - W`. If :math:`r_t = M - D`, then
:math:`|r_t| \le |M| + D` and

.. math:: (1 - c) D < W + 2 E + 2 c (|M| + B) ,

so that :math:`D < W + 2.02 \, (E + c (|M| + B + W))`. Twice `_SLACK` is more than 2.02: the rest is
for :math:`\lVert \tilde h \rVert`, which may be larger than :math:`\lVert h \rVert` by the share
:math:`2^{-8}`, and for rounding in norms, in this bound and in the mapping.
"""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.nn.prepared_weight import PreparedWeight
from onmt_entmax.nn.sparse_entries import nonzero
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import log_entmax

# The fewest weights with which the filter saves time.
_LEAST_WEIGHTS = 1 << 22
# The largest share of the scores that may be candidates. With more, computing these again would
# take the time that the filter saves.
_MOST_CANDIDATES = 1 / 256
# Unit roundoff of each type.
_BFLOAT16, _FLOAT32 = 2.0**-8, 2.0**-24
_SMALLEST = 2.0**-126  # tau, the smallest normal number of both types
_LARGEST = 2.0**126  # sums up to this cannot overflow
_SHARE = _BFLOAT16 + 4 * _FLOAT32  # c
_SLACK = 1.03  # half of the factor 2.02, and the rest that the proof names


class Bfloat16Filter:
    """Finds the supports of an output layer by products in bfloat16.

    Args:
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        alpha: a number > 1.
    """

    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._weight, self._bias, self._alpha = weight, bias, alpha
        self._multiply = PreparedWeight(weight, dtype=torch.bfloat16)
        # Largest values of all tokens: the norm of w, the norm of its rounding error, and B.
        parts = weight.split(512)  # in parts, since they are converted to float64
        self._largest_norm = torch.stack([_norms(rows).amax() for rows in parts]).amax()
        self._largest_error = torch.stack([_error_norms(rows).amax() for rows in parts]).amax()
        self._largest_bias = bias.abs().amax()

    @classmethod
    def if_faster(cls, weight: Tensor, bias: Tensor, alpha: float) -> Bfloat16Filter | None:
        """Return the filter of an output layer, or None if it would save no time.

        It saves none for softmax, for few weights, and on processors that do not multiply bfloat16.

        Args:
            weight: ``(vocabulary, hidden)``.
            bias: ``(vocabulary,)``.
            alpha: a number >= 1.
        """
        instructions = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        # Older versions of PyTorch lack these functions.
        is_fast = any(getattr(torch.cpu, name, lambda: False)() for name in instructions)
        on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
        if not (is_fast and on_cpu and alpha > 1 and weight.numel() >= _LEAST_WEIGHTS):
            return None
        return cls(weight, bias, alpha)

    def supports(self, hidden: Tensor) -> Support | None:
        """Return the supports given states ``(rows, hidden)`` in float32, or None if it fails.

        It fails if there are too many candidates, or if numbers are too large for the bound or not
        finite. Then the product in bfloat16, which takes half the time of one in float32, was in
        vain.
        """
        position = self.candidates(hidden)
        if position is None:
            return None
        vocabulary = len(self._weight)
        row = position // vocabulary
        token = position - row * vocabulary
        exact = torch.linalg.vecdot(hidden[row], self._weight[token]).add_(self._bias[token])
        # The candidates of each row side by side, filled up with -inf.
        count = row.bincount(minlength=len(hidden))
        place = torch.arange(len(row)) - (count.cumsum(0) - count)[row]
        scores = exact.new_full((len(hidden), int(count.max())), -torch.inf)
        scores[row, place] = exact
        log_prob = log_entmax(scores, self._alpha)[row, place]
        inside = log_prob > -torch.inf
        return Support(len(hidden), vocabulary, row[inside], token[inside], log_prob[inside])

    def candidates(self, hidden: Tensor) -> Tensor | None:
        """Return the ascending positions of candidates in flattened scores ``(rows, vocabulary)``.

        Every token of a support is among them. None: see `supports`.
        """
        rough = self._multiply(hidden).add_(self._bias)  # r
        maxima = rough.amax(1, keepdim=True)  # M
        window = 1 / (self._alpha - 1)  # W
        norms = _norms(hidden)
        # E: n additions in a rough score, n in a score in float32, and all of these twice for
        # safety; then the errors of both factors.
        sums = 4 * hidden.shape[1] * (_FLOAT32 * norms * self._largest_norm + _SMALLEST)
        error = _error_norms(hidden) * self._largest_norm + norms * self._largest_error + sums
        rounding = (maxima.abs() + window + self._largest_bias) * _SHARE  # c (|M| + B + W)
        cut = maxima - window - 2 * _SLACK * (error + rounding)  # M - D
        fits = cut.isfinite() & (norms * self._largest_norm + self._largest_bias <= _LARGEST)
        if not (len(hidden) and bool(fits.all())):
            return None
        # In place, since the scores are the largest tensors of a search.
        return nonzero(torch.ge(rough, cut.float(), out=rough), _MOST_CANDIDATES)


def _norms(rows: Tensor) -> Tensor:
    """Return the norm of each row, in float64, whose squares do not underflow."""
    return torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)


def _error_norms(rows: Tensor) -> Tensor:
    """Return the norm of each row's error in bfloat16, with subnormal numbers read as 0."""
    rounded = rows.bfloat16().float()
    return _norms(torch.where(rounded.abs() >= _SMALLEST, rows - rounded, rows))
