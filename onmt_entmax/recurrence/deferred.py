"""Gradients of weights that all steps of a recurrence share: one product over all steps.

For LSTMs without attention: Appleyard et al. 2016, "Optimizing Performance of Recurrent Neural
Networks on GPUs".
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onmt_entmax.nn.products import PreparedWeight, rounded_empty, transposed_times


class _AfterAllSteps(torch.autograd.Function):
    """The node whose backward runs after those of all functions that took its result."""

    @staticmethod
    def forward(ctx: Any, owner: Any, *tensors: Tensor) -> Tensor:
        ctx.owner = owner
        return tensors[0].new_empty(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.owner.finish()


def after_all_steps(owner: Any, *tensors: Tensor) -> Tensor:
    """Return a scalar for every step to depend on: `owner.finish` then runs after all of them.

    Steps take the scalar as an input and ignore its value. Autograd calls `finish` once it has been
    through every step.

    Args:
        owner: its `finish()` returns the gradients of the tensors. It must not refer to the scalar,
            which refers to it.
        tensors: what the owner has its weights from.
    """
    return _AfterAllSteps.apply(owner, *tensors)


class DeferredWeight:
    """A weight that the steps of a recurrence multiply, with one product for its gradient.

    In each step autograd would add to the gradients of weight and summand. Here steps only write
    their factors into `inputs` and `gradients`, and `finish` multiplies these once.

    Args:
        weight: ``(out, in)``, or ``(batch, out, in)``.
        summand: what the caller adds to the products, ``(..., rows, out)``, or None.
        sizes: rows of each step.
        dtype: of the factors, as in `product`.

    Attributes:
        multiply: an input by the weight, see `PreparedWeight.multiply`.
        summands: the summand of each step, ``(..., rows, out)``.
        inputs: receive the inputs of each step, ``(..., rows, in)``, in the type of the factors.
        gradients: in the backward pass, receive those of its products, ``(..., rows, out)``, in
            that type too, so that no product converts what a step has written.
        all_inputs: of all steps, followed by zeros.
        all_gradients: likewise.
    """

    def __init__(
        self,
        weight: Tensor,
        summand: Tensor | None,
        sizes: list[int],
        dtype: torch.dtype | None = None,
    ) -> None:
        self._sizes, self._result = sizes, weight.dtype
        self._weight = weight.detach().to(dtype or weight.dtype)  # once for both passes
        self.multiply = PreparedWeight(self._weight).multiply
        self.summands = [] if summand is None else self._split(summand.detach())
        self.all_inputs = self._memory(weight.size(-1))
        self.inputs = self._split(self.all_inputs)
        self._transposed: PreparedWeight | None = None  # in the backward pass

    def _memory(self, size: int) -> Tensor:
        shape = *self._weight.shape[:-2], size
        return rounded_empty(sum(self._sizes), *shape, like=self._weight, dtype=self._weight.dtype)

    def _split(self, packed: Tensor) -> Sequence[Tensor]:
        return packed[..., : sum(self._sizes), :].split(self._sizes, -2)

    def start_backward(self) -> bool:
        """Prepare the backward pass if this is its first step; return whether it is."""
        if self._transposed is not None:
            return False
        self._transposed = PreparedWeight(self._weight.mT)
        self.all_gradients = self._memory(self._weight.size(-2))
        self.gradients = self._split(self.all_gradients)
        return True

    def input_gradient(self, step: int) -> Tensor:
        """Return the gradient of a step's inputs ``(..., rows, in)``, given its `gradients`."""
        assert self._transposed is not None
        return self._transposed.multiply(self.gradients[step]).to(self._result)

    def finish(self) -> tuple[Tensor, ...]:
        """Return the gradients of weight and summand, and forget those of the steps."""
        gradients, self._transposed = self.all_gradients, None
        del self.all_gradients, self.gradients
        if self._weight.dim() == 2:
            weight = transposed_times(gradients, self.all_inputs, self._result)
        else:
            weight = gradients.mT.to(self._result) @ self.all_inputs.to(self._result)
        if not self.summands:
            return (weight,)
        return weight, gradients[..., : sum(self._sizes), :].to(self._result)
