"""From the top layer's states to the outputs, which the next step is fed: attention and dropout."""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.nn.lstm.attention import RecurrentAttention
from onmt_entmax.nn.lstm.cells import Steps


class Readout:
    """The readout of one batch, step by step and back, in PyTorch operations.

    Args:
        steps: active rows.
        attention: see there.
        factors: of the dropout of the attentional vectors, ``(total, hidden)``, or None.
        fed: receives the outputs that are fed, ``(rows, hidden)`` packed by the step they enter.

    Attributes:
        plain: attentional vectors, packed ``(total, hidden)``.
        outputs: these times the factors.
    """

    def __init__(
        self, steps: Steps, attention: RecurrentAttention, factors: Tensor | None, fed: Tensor
    ) -> None:
        self._steps, self._attention = steps, attention
        self._factors, self._fed = factors, fed
        self.plain = attention.weights.new_empty(steps.total, fed.size(1))
        self.outputs = self.plain if factors is None else torch.empty_like(self.plain)

    def forward(self, step: int) -> None:
        """Read out a step, and feed the next."""
        rows = self._steps.rows(step)
        self.plain[rows] = self._attention.step(step)
        if self._factors is not None:
            torch.mul(self.plain[rows], self._factors[rows], out=self.outputs[rows])
        if step + 1 < len(self._steps.sizes):
            following = self._steps.rows(step + 1)
            going_on = following.stop - following.start
            self._fed[following] = self.outputs[rows][:going_on]

    def end(self) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs, attentional vectors, attention: results, of which nothing is kept here.

        The graph holds this object and the results hold the graph: a reference from here to the
        results would be a cycle that is never freed.
        """
        results = self.outputs, self.plain, self._attention.weights
        self.outputs = self.plain = self._attention.weights = self._fed
        return results

    def start_backward(
        self, plain: Tensor, attended: Tensor, grad: Tensor, grad_attended: Tensor | None
    ) -> None:
        """Prepare the way back.

        Args:
            plain: as `end` gave it.
            attended: likewise.
            grad: of the outputs, ``(total, hidden)``; in the end of the attentional vectors
                before their tanh.
            grad_attended: of the attention, or None.
        """
        self._grad, self._grad_attended = grad, grad_attended
        self._slopes = self._factors
        if not self._attention.additive:
            ones = torch.ones_like(plain) if self._factors is None else self._factors
            self._slopes = torch.ops.aten.tanh_backward(ones, plain)
        self._attention.start_backward(attended)

    def backward(self, step: int, fed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Go back through a step; steps come in reverse order.

        Args:
            step: its number.
            fed: gradient of what the step after it was fed, ``(rows, hidden)``, or None.

        Returns:
            Gradient of the queries ``(rows, hidden)``, and what is to be added to it.
        """
        rows = self._steps.rows(step)
        grad = self._grad[rows]
        if fed is not None:
            grad[: fed.size(0)] += fed
        if self._slopes is not None:
            grad *= self._slopes[rows]
        return self._attention.step_backward(step, grad, self._grad_attended), None

    def finish_backward(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Gradients of the source vectors, and of the attention's weights by name."""
        bank, weights = self._attention.finish_backward(self._grad)
        self._attention.weights = self._fed
        return bank, weights
