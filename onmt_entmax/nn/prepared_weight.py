"""One weight that multiplies few rows many times, as in the steps of a recurrence or a search."""

import torch
from torch import Tensor

from onmt_entmax.nn.onednn import multiply_as_is, onednn_linear, padded, reordered, uses_onednn

# The number of rows is padded to a multiple of this: less than in training, since the steps of a
# search have fewer rows.
_SEARCH_ROWS = 8


class PreparedWeight:
    """A weight in the layout that oneDNN multiplies fastest; autograd does not see its products.

    There are three functions. All return ``x @ weight.T (+ bias)`` for x ``(..., rows, in)``:

    | product | x | result |
    |---|---|---|
    | ``weight(x)`` | any type, any number of rows | in the type of the weight |
    | ``weight.multiply_padded(x)`` | any type, any number of rows | in the type of the factors |
    | ``weight.multiply(x)`` | the type of the factors, one of few numbers of rows | the same |

    On processors that do not multiply bfloat16, results "in the type of the factors" are float32.

    Args:
        weight: ``(out, in)``, which may be a transposed view, or ``(batch, out, in)``.
        bias: ``(out,)`` in the type of the weight, or None; not with another ``dtype``.
        dtype: the type of the factors, such as `torch.bfloat16`; None keeps that of `weight`.

    Attributes:
        dtype: the type of the factors.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> None:
        self.dtype = dtype or weight.dtype
        self._result_dtype, self._bias = weight.dtype, bias
        self._weight = weight.detach().to(self.dtype)
        self._is_prepared = weight.dim() == 2 and uses_onednn(weight.device, self.dtype)
        if self._is_prepared:
            self._weight = reordered(self._weight)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the product in the type of the weight, for x of any type and number of rows."""
        return self.multiply_padded(x).to(self._result_dtype)

    def multiply_padded(self, x: Tensor) -> Tensor:
        """Return the product in the type of the factors, for x of any type and number of rows."""
        if not self._is_prepared:
            return self.multiply(x.to(self.dtype))
        return self.multiply(padded(x, self.dtype, _SEARCH_ROWS))[: len(x)]

    def multiply(self, x: Tensor) -> Tensor:
        """Return the product of x in the type of the factors, without padding.

        oneDNN compiles a program for each number of rows, so few different ones should occur.
        """
        if self._is_prepared:
            return onednn_linear(x, self._weight, self._bias)
        if x.dim() == 3:
            return x @ self._weight.mT
        return multiply_as_is(x, self._weight, self._bias)
