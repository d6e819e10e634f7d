"""Two attention heads for a recurrence with a derived backward pass: step by step, and back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import linear

from onmt_entmax.mappings import entmax
from onmt_entmax.modules.recurrence.attention import RecurrentAttention
from onmt_entmax.modules.recurrence.steps import Steps


class RecurrentTwoHeads:
    """`TwoHeadedAttention` of one batch, step by step and back: two `RecurrentAttention` and the
    gate between them. Same methods as that class.

    Args:
        steps: active rows.
        bank: source vectors ``(batch, src_len, hidden)``, without marks, contiguous.
        padding: ``(batch, 2, src_len)``, -inf at the positions that a head does not see, 0 else.
        alpha: of the heads' mapping.
        weights: `TwoHeadedAttention`'s parameters by name.
        dtype: type of the products with the heads' weights, see `PreparedWeight`.
        queries: of all steps, packed ``(total, hidden)``; a step reads its own rows.
        asked: the same in the type of the products.
    """

    additive = True  # no tanh is taken of the mixed vectors

    def __init__(
        self,
        steps: Steps,
        bank: Tensor,
        padding: Tensor,
        alpha: float,
        weights: Mapping[str, Tensor],
        dtype: torch.dtype | None,
        queries: Tensor,
        asked: Tensor,
    ) -> None:
        self._steps, self._size, self._queries = steps, bank.size(2), queries
        self._gate_weight, self._gate_bias = weights["gate.weight"], weights["gate.bias"]
        self._heads = [
            RecurrentAttention(
                steps,
                bank,
                padding[:, number].contiguous(),
                alpha,
                {"linear_in.weight": match, "linear_out.weight": out},
                dtype,
                queries,
                asked,
            )
            for number, (match, out) in enumerate(
                zip(
                    weights["linear_in.weight"].chunk(2),
                    (weights["linear_out.0.weight"], weights["linear_out.1.weight"]),
                    strict=True,
                )
            )
        ]
        # What the gate reads, [o_1, o_2, q], and what it gives.
        self._inputs = bank.new_empty(steps.total, 3 * self._size)
        self._gates = bank.new_empty(steps.total, 2)
        self.weights = bank.new_zeros(len(steps.sizes), steps.batch, bank.size(1))

    def step(self, step: int) -> Tensor:
        """Attentional vectors ``(rows, hidden)`` of a step."""
        rows, size = self._steps.rows(step), self._steps.sizes[step]
        inputs = self._inputs[rows]
        first, second, last = inputs.chunk(3, dim=1)
        first.copy_(self._heads[0].step(step))
        second.copy_(self._heads[1].step(step))
        last.copy_(self._queries[rows])
        gate = entmax(linear(inputs, self._gate_weight, self._gate_bias), 2.0)
        self._gates[rows] = gate
        one, other = gate.split(1, dim=1)
        for head, share in zip(self._heads, (one, other), strict=True):
            self.weights[step, :size].addcmul_(head.weights[step, :size], share)
        return torch.addcmul(first * one, second, other)

    def start_backward(self, weights: Tensor) -> None:
        """Prepare what the steps back share; `weights` is `self.weights` after the last step."""
        self.weights = weights
        for head in self._heads:
            head.start_backward(head.weights)
        self._grad_scores = torch.empty_like(self._gates)
        self._grad_vectors = [self._inputs.new_empty(self._steps.total, self._size) for _ in "12"]

    def step_backward(self, step: int, grad: Tensor, grad_weights: Tensor | None) -> Tensor:
        """Gradient of a step's queries; see `RecurrentAttention.step_backward`."""
        rows, size = self._steps.rows(step), grad.size(0)
        vectors, gate = self._inputs[rows], self._gates[rows]
        vectors = vectors[:, : 2 * self._size].unflatten(1, (2, self._size))
        grad_gate = (vectors @ grad.unsqueeze(2)).squeeze(2)
        if grad_weights is not None:
            attended = torch.stack([head.weights[step, :size] for head in self._heads], dim=1)
            grad_gate += (attended @ grad_weights[step, :size].unsqueeze(2)).squeeze(2)
        # The Jacobian of sparsemax: on the support, minus the mean.
        support = (gate > 0).to(gate.dtype)
        mean = (grad_gate * support).sum(1, keepdim=True) / support.sum(1, keepdim=True)
        grad_scores = (grad_gate - mean) * support
        self._grad_scores[rows] = grad_scores
        *shares, grad_query = (grad_scores @ self._gate_weight).chunk(3, dim=1)
        for number, head in enumerate(self._heads):
            share = gate[:, number : number + 1]
            grad_vector = torch.addcmul(shares[number], grad, share)
            grad_vector = torch.ops.aten.tanh_backward(grad_vector, vectors[:, number])
            self._grad_vectors[number][rows] = grad_vector
            of_weights = None if grad_weights is None else _scaled(grad_weights, step, share)
            grad_query = grad_query + head.step_backward(step, grad_vector, of_weights)
        return grad_query

    def finish_backward(self, grad: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Gradient of the bank, and of the weights by name; `grad` was taken in step by step."""
        (bank, first), (more, second) = (
            head.finish_backward(vectors)
            for head, vectors in zip(self._heads, self._grad_vectors, strict=True)
        )
        grads = {
            "linear_in.weight": torch.cat([first["linear_in.weight"], second["linear_in.weight"]]),
            "linear_out.0.weight": first["linear_out.weight"],
            "linear_out.1.weight": second["linear_out.weight"],
            "gate.weight": self._grad_scores.t() @ self._inputs,
            "gate.bias": self._grad_scores.sum(0),
        }
        return bank + more, grads


def _scaled(grad_weights: Tensor, step: int, share: Tensor) -> Tensor:
    """Gradients of a head's weights, right at the rows of this step."""
    scaled = torch.zeros_like(grad_weights)
    size = share.size(0)
    scaled[step, :size] = grad_weights[step, :size] * share
    return scaled
