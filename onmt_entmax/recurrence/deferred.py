"""Gradients of weights that all steps of a recurrence share: one product over all steps.

Source, for LSTMs without attention: Appleyard et al. 2016, "Optimizing Performance of Recurrent
Neural Networks on GPUs". docs/recurrence.md has a picture.

The steps are functions of autograd, `LayerStep` and `AttentionStep`. They share an owner, such as a
`DeferredWeight`: each step writes its own part of the owner's memory. The order of calls is:

1. Before the steps, ``dependency = after_all_steps(owner, weight, summand)``. Every step takes this
   scalar as an input, and ignores its value.
2. The forward pass of a step writes ``inputs[step]`` and passes it to ``multiply``.
3. The backward pass of a step, the last step first, calls ``start_backward()``. The first call
   prepares the memory of the pass; later ones do nothing. Then the step writes
   ``gradients[step]`` and calls ``input_gradient(step)``.
4. Autograd calls ``finish()`` for the gradients of weight and summand, when the backward passes of
   all steps are done, because every step took the scalar. ``finish`` frees the memory of the pass.
   If the graph was retained, another backward pass may start then.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onmt_entmax.nn.onednn import padded_empty
from onmt_entmax.nn.prepared_weight import PreparedWeight
from onmt_entmax.nn.products import weight_gradient_of_padded


class _Finishing(Protocol):
    """An owner, as `after_all_steps` needs it. The steps call other methods of its class, too."""

    def finish(self) -> tuple[Tensor, ...]:
        """Return the gradients of the tensors that `after_all_steps` was given."""


class _AfterAllSteps(torch.autograd.Function):
    """A node of the graph whose backward pass runs after those of all steps.

    ``apply(owner, *tensors)`` returns a scalar, whose value has no meaning. Every step takes it as
    an input, so that autograd runs this node's backward pass last.
    """

    @staticmethod
    def forward(ctx: Any, owner: _Finishing, *tensors: Tensor) -> Tensor:
        ctx.owner = owner
        return tensors[0].new_empty(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.owner.finish()


def after_all_steps(owner: _Finishing, *tensors: Tensor) -> Tensor:
    """Return a scalar for every step to depend on, so that `owner.finish` runs after all of them.

    Args:
        owner: its `finish()` returns the gradients of the tensors. It must not refer to the scalar,
            which refers to it: such a cycle would keep both until Python collects garbage.
        tensors: the tensors from which the owner was made.
    """
    return _AfterAllSteps.apply(owner, *tensors)


class DeferredWeight:
    """A weight that the steps of a recurrence multiply; one product computes its gradient.

    By itself, autograd would compute a product in each step, and add it to the gradients of weight
    and summand. Here the steps only write the factors of these products into `inputs` and
    `gradients`, and `finish` multiplies all of them at once. The module's docstring has the order
    of calls.

    Args:
        weight: ``(out, in)``, or one for each of several directions, ``(directions, out, in)``.
        summand: what the caller adds to the products, ``(..., total, out)``, or None. Here ``...``
            is the directions, if the weight has them, and total is the sum of the sizes.
        sizes: number of rows of each step.
        dtype: type of the factors of products, such as `torch.bfloat16`; None: the weight's type.

    Attributes:
        multiply: function that multiplies an input by the weight, see `PreparedWeight.multiply`.
        summands: the part of the summand for each step, ``(..., rows, out)``.
        inputs: the memory into which each step writes its inputs, ``(..., rows, in)``, in the type
            of the factors, so that no product has to convert them.
        gradients: the memory into which each step writes the gradient with respect to its product,
            ``(..., rows, out)``, in the type of the factors. Empty outside of a backward pass.
        all_inputs: the memory of all `inputs`, ``(..., total, in)``, followed by rows of zeros that
            round up the number of rows, see `padded_empty`.
        all_gradients: the memory of all `gradients`, ``(..., total, out)``, followed by the same
            number of rows of zeros. None outside of a backward pass. `DeferredAttention` reads
            `all_inputs` and `all_gradients`.
    """

    def __init__(
        self,
        weight: Tensor,
        summand: Tensor | None,
        sizes: list[int],
        dtype: torch.dtype | None = None,
    ) -> None:
        self._sizes, self._result_dtype = sizes, weight.dtype
        self._weight = weight.detach().to(dtype or weight.dtype)  # once for both passes
        self.multiply = PreparedWeight(self._weight).multiply
        self.summands = [] if summand is None else self._split(summand.detach())
        self.all_inputs = self._memory(weight.size(-1))
        self.inputs = self._split(self.all_inputs)
        self.all_gradients: Tensor | None = None
        self.gradients: Sequence[Tensor] = ()
        self._transposed: PreparedWeight | None = None  # in a backward pass

    def _memory(self, size: int) -> Tensor:
        """Return memory for rows of all steps, ``(..., total, size)``, then rows of zeros."""
        shape = *self._weight.shape[:-2], size
        return padded_empty(sum(self._sizes), *shape, like=self._weight, dtype=self._weight.dtype)

    def _split(self, packed: Tensor) -> Sequence[Tensor]:
        """Return the rows of each step as views."""
        return packed[..., : sum(self._sizes), :].split(self._sizes, -2)

    def start_backward(self) -> bool:
        """Prepare a backward pass if this is its first call in the pass; return whether it is.

        Every step calls this, since no step knows whether it is the first. A `DeferredAttention`
        that contains this weight prepares its own memory if the result is True.
        """
        if self._transposed is not None:
            return False
        self._transposed = PreparedWeight(self._weight.mT)
        self.all_gradients = self._memory(self._weight.size(-2))
        self.gradients = self._split(self.all_gradients)
        return True

    def input_gradient(self, step: int) -> Tensor:
        """Return the gradient with respect to a step's inputs, ``(..., rows, in)``.

        It is computed from ``gradients[step]``, which the step has written, and is in the type of
        the weight.
        """
        assert self._transposed is not None, "the step has called `start_backward`"
        return self._transposed.multiply(self.gradients[step]).to(self._result_dtype)

    def finish(self) -> tuple[Tensor, ...]:
        """Return the gradients of the weight and, if there is one, of the summand.

        They are in the shapes and the type of these. The memory of the steps' gradients is freed.
        """
        gradients = self.all_gradients
        assert gradients is not None, "a step has called `start_backward`"
        self._transposed, self.all_gradients, self.gradients = None, None, ()
        if self._weight.dim() == 2:
            weight = weight_gradient_of_padded(gradients, self.all_inputs, self._result_dtype)
        else:
            weight = gradients.mT.to(self._result_dtype) @ self.all_inputs.to(self._result_dtype)
        if not self.summands:
            return (weight,)
        return weight, gradients[..., : sum(self._sizes), :].to(self._result_dtype)
