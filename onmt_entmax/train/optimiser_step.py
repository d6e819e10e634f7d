"""The step of the optimiser: clip the gradient, change the weights, clear the gradient.

`OptimizerStep.take` may be recorded as a CUDA graph (see `graphs`): with a fused optimiser it reads
no value back from the device.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class OptimizerStep:
    """Steps of an optimiser on the gradients that the weights have.

    Args:
        optimizer: one that `build_optimizer` made.
        weights: the weights that are trained.
        largest_norm: the norm to which gradients are clipped; 0: never.
        keep_addresses: whether gradients and learning rates stay where they are in memory, as CUDA
            graphs need.

    Attributes:
        fused: whether the optimiser is fused: then it reads learning rate and finiteness on the
            device.
        finite: 0-dim tensor, 0 if the last step was left out, else 1.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        weights: Sequence[nn.Parameter],
        largest_norm: float,
        keep_addresses: bool,
    ) -> None:
        self._optimizer = optimizer
        self._weights = weights
        self._largest_norm = largest_norm
        self._keeps_addresses = keep_addresses
        self.fused = all(group.get("fused") for group in optimizer.param_groups)
        self.finite = weights[0].new_zeros(())
        if keep_addresses:
            self._fix_addresses()

    def _fix_addresses(self) -> None:
        """Allocate gradients and learning rates, which are only overwritten from now on."""
        for weight in self._weights:
            weight.grad = torch.zeros_like(weight)
        if self.fused:
            device = self.finite.device
            for group in self._optimizer.param_groups:
                group["lr"] = torch.zeros((), device=device)
                group["capturable"] = device.type == "cuda"
            # Else PyTorch warns that the first step runs outside a graph, as it must.
            self._optimizer._warned_capturable_if_run_uncaptured = True

    def set_rates(self, rates: Sequence[float]) -> None:
        """Set the learning rate of each group of weights; more rates are ignored."""
        for group, rate in zip(self._optimizer.param_groups, rates, strict=False):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def gradients(self) -> list[Tensor]:
        """Return the gradients of the weights that have one."""
        return [weight.grad for weight in self._weights if weight.grad is not None]

    def take(self, loss: Tensor) -> Tensor:
        """Take a step, or leave it out if the loss or the gradient is not finite.

        Args:
            loss: 0-dim, to which the gradients belong.

        Returns:
            The norm of the gradient before it was clipped, 0-dim.
        """
        gradients = self.gradients()
        norm = nn.utils.get_total_norm(gradients)
        if self._largest_norm > 0:
            nn.utils.clip_grads_with_norm_(self._weights, self._largest_norm, norm)
        self.finite.copy_((loss + norm).isfinite())
        if self.fused:  # leaves out the step by itself, without waiting for the device
            self._optimizer.found_inf = (1 - self.finite).float()  # type: ignore[attr-defined]
        if self.fused or bool(self.finite):
            self._optimizer.step()
        if self._keeps_addresses:
            torch._foreach_zero_(gradients)
        else:
            self._optimizer.zero_grad()
        return norm

    def changed(self) -> list[Tensor]:
        """Return the tensors that `take` changes."""
        moments = [
            value
            for of_weight in self._optimizer.state.values()
            for value in of_weight.values()
            if isinstance(value, Tensor)
        ]
        return [*self._weights, *moments, *self.gradients(), self.finite]
