"""Single steps of LSTM cells and attention on padded batches, forward and backward.

`static_triton.py` has kernels for them; PyTorch operations replace these without Triton, and where
they cover no tensor, alpha or attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.lstm.attention import add_context, dots, sum_over_steps
from onmt_entmax.sparse.backends import backend_for, has_kernels


def _kernels_for(like: Tensor) -> Any:
    """Return the module of the kernels, or None if such tensors have none."""
    if not has_kernels(like):
        return None
    from onmt_entmax.nn.lstm import static_triton

    return static_triton


def cell_forward(
    gates: Tensor,
    cell_before: Tensor,
    cell_after: Tensor,
    hidden_before: Tensor | None,
    hidden_after: Tensor,
    live: Tensor | None = None,
    second: Tensor | None = None,
    factors: Tensor | None = None,
) -> None:
    """Take an LSTM step in one or two directions (Hochreiter & Schmidhuber 1997).

    Args:
        gates: pre-activations ``(directions, rows, 4 * hidden)``, replaced by the activations.
        cell_before: cell states ``(directions, rows, hidden)``.
        cell_after: receives the cell states.
        hidden_before: hidden states of the previous step; None without `live`.
        hidden_after: receives the hidden states; rows may have any stride.
        live: ``(directions, rows)``, 1 for tokens and 0 for padding, which keeps its states.
        second: also receives the hidden states, times `factors`; for one direction only.
        factors: dropout factors ``(rows, hidden)``.
    """
    kernels = _kernels_for(gates)
    if kernels is not None:
        kernels.cell_forward(
            gates, cell_before, cell_after, hidden_before, hidden_after, live, second, factors
        )
        return
    enter, forget, candidate, leave = gates.chunk(4, dim=2)
    enter.sigmoid_()
    forget.sigmoid_()
    candidate.tanh_()
    leave.sigmoid_()
    cell = torch.addcmul(forget * cell_before, enter, candidate)
    hidden = leave * cell.tanh()
    if live is not None:
        assert hidden_before is not None
        going = live.unsqueeze(2) > 0
        cell = torch.where(going, cell, cell_before)
        hidden = torch.where(going, hidden, hidden_before)
    cell_after.copy_(cell)
    hidden_after.copy_(hidden)
    if second is not None:
        second.copy_(hidden if factors is None else hidden * factors)


def cell_backward(
    gates: Tensor,
    cell_before: Tensor,
    cell_after: Tensor,
    grad_state: Tensor,
    grad_above: Tensor,
    grad_cell: Tensor,
    live: Tensor | None = None,
    factors: Tensor | None = None,
) -> None:
    """Compute the gradient of `cell_forward`.

    Args:
        gates: activations, replaced by the gradients of the pre-activations.
        cell_before: cell states before the step ``(directions, rows, hidden)``.
        cell_after: cell states after the step, likewise.
        grad_state: gradient of the hidden states from the next step; rows may have any stride. With
            `live`, replaced by the gradient that padding passes to the previous step.
        grad_above: gradient of the hidden states from the layer above, before `factors`.
        grad_cell: gradient of `cell_after`, replaced by that of `cell_before`.
        live: as in `cell_forward`.
        factors: as in `cell_forward`.
    """
    kernels = _kernels_for(gates)
    if kernels is not None:
        kernels.cell_backward(
            gates, cell_before, cell_after, grad_state, grad_above, grad_cell, live, factors
        )
        return
    enter, forget, candidate, leave = gates.chunk(4, dim=2)
    grad = grad_state + (grad_above if factors is None else grad_above * factors)
    squashed = cell_after.tanh()
    through = grad_cell + grad * leave * (1 - squashed * squashed)
    parts = [
        through * candidate * enter * (1 - enter),
        through * cell_before * forget * (1 - forget),
        through * enter * (1 - candidate * candidate),
        grad * squashed * leave * (1 - leave),
    ]
    through = through * forget
    made = torch.cat(parts, dim=2)
    if live is not None:
        going = live.unsqueeze(2) > 0
        made = torch.where(going, made, 0.0)
        through = torch.where(going, through, grad_cell)
        grad_state.copy_(torch.where(going, 0.0, grad))
    gates.copy_(made)
    grad_cell.copy_(through)


class DotAttention:
    """Global attention with scores ``key . query``: OpenNMT-py's `dot` and `general`.

    As in `attention.py`, source vectors m are projected once for all steps: with a context vector c
    and a query q, ``W [c; q] = sum_j p_j (W_c m_j) + W_q q``.

    Args:
        bank: source vectors ``(rows, source, hidden)``, contiguous.
        lengths: real source positions of each row, ``(rows,)`` int64, at least 1.
        alpha: in [1, 3].
        weights: parameters of `GlobalAttention` by name.
        steps: number of decoder steps.
        factors: dropout factors of the outputs, ``(steps, rows, hidden)``, or None.

    Attributes:
        outputs: ``(steps, rows, hidden)``, after dropout.
    """

    has_tanh = True  # of the output

    def __init__(
        self,
        bank: Tensor,
        lengths: Tensor,
        alpha: float,
        weights: Mapping[str, Tensor],
        steps: int,
        factors: Tensor | None,
    ) -> None:
        rows, source, hidden = bank.shape
        self._bank, self._flat, self._alpha = bank, bank.view(-1, hidden), alpha
        self._given, self._factors = weights, factors
        self._context, self._query = weights["linear_out.weight"].split(hidden, dim=1)
        self._values = (self._flat @ self._context.t()).view_as(bank)
        self._keys = self._project()
        real = torch.arange(source, device=bank.device) < lengths.unsqueeze(1)
        self._padding = torch.zeros_like(real, dtype=bank.dtype).masked_fill_(~real, -torch.inf)
        self.outputs = bank.new_empty(steps, rows, hidden)
        self._queries = bank.new_empty(steps, rows, hidden)
        self._weights = bank.new_empty(steps, rows, source)
        self._from_query = bank.new_empty(rows, hidden)
        self._kernels = self._find_kernels(lengths)

    def _project(self) -> Tensor:
        """Return the keys."""
        if "linear_in.weight" not in self._given:
            return self._bank
        return (self._flat @ self._given["linear_in.weight"]).view_as(self._bank)

    def _find_kernels(self, lengths: Tensor) -> Any:
        kernels = _kernels_for(self._bank)
        if kernels is None or not kernels.covers(self._keys, self._alpha):
            return None
        return kernels.Attend(self._keys, self._values, lengths, self._alpha)

    def queries(self, step: int) -> Tensor:
        """Return the memory for the queries ``(rows, hidden)`` of a step."""
        return self._queries[step]

    def forward(self, step: int, fed: Tensor) -> None:
        """Take a step; write the outputs to `fed` too, whose rows may have any stride."""
        query, factors = self._queries[step], self._of(step)
        if "linear_out.bias" in self._given:
            bias = self._given["linear_out.bias"]
            torch.addmm(bias, query, self._query.t(), out=self._from_query)
        else:
            torch.mm(query, self._query.t(), out=self._from_query)
        if self._kernels is not None:
            made = self._weights[step], self.outputs[step], fed
            self._kernels.forward(query, self._from_query, factors, *made)
            return
        scores = self._scores(step, query) + self._padding
        weights = backend_for(scores, self._alpha).probabilities(scores, self._alpha)
        self._weights[step] = weights
        output = add_context(self._from_query, weights, self._values)
        output = output.tanh() if self.has_tanh else output
        output = output if factors is None else output * factors
        self.outputs[step] = output
        fed.copy_(output)

    def _scores(self, step: int, query: Tensor) -> Tensor:
        return dots(query, self._keys)

    def start_backward(self, grad_outputs: Tensor) -> None:
        """Start the backward pass from the gradient of `outputs`, contiguous."""
        self._grad_outputs = grad_outputs
        self._grad_plain = torch.empty_like(self.outputs)
        self._grad_scores = torch.empty_like(self._weights)

    def backward(self, step: int, grad_fed: Tensor, grad_queries: Tensor) -> None:
        """Compute the gradient of a step; the last step comes first.

        Args:
            step: number of the step.
            grad_fed: gradient of `fed`, ``(rows, hidden)``; rows may have any stride.
            grad_queries: receives the gradient of the queries, ``(rows, hidden)``.
        """
        weights, factors, plain = self._weights[step], self._of(step), self._grad_plain[step]
        grad_scores, output = self._grad_scores[step], self.outputs[step]
        if self._kernels is not None:
            self._kernels.backward(
                self._grad_outputs[step],
                grad_fed,
                output,
                factors,
                weights,
                plain,
                grad_scores,
                grad_queries,
            )
        else:
            grad = self._grad_outputs[step] + grad_fed
            if factors is not None:
                grad = grad * factors
                # Dropped outputs have no gradient, so their values do not matter.
                output = output / torch.where(factors == 0, 1.0, factors)
            plain.copy_(grad * (1 - output * output) if self.has_tanh else grad)
            arriving = dots(plain, self._values)
            backend = backend_for(weights, self._alpha, arriving)
            made = backend.scores_gradient(weights, self._alpha, arriving, weights.dtype)
            grad_scores.copy_(made)
            grad_queries.copy_(self._scores_backward(step, grad_scores))
        grad_queries.addmm_(plain, self._query)

    def _scores_backward(self, step: int, grad_scores: Tensor) -> Tensor:
        """Return the gradient of the queries through the scores."""
        return torch.bmm(grad_scores.unsqueeze(1), self._keys).squeeze(1)

    def _of(self, step: int) -> Tensor | None:
        return None if self._factors is None else self._factors[step]

    def finish_backward(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the gradients of `bank`, and of the weights by name."""
        hidden = self._bank.size(2)
        plain, queries = self._grad_plain.view(-1, hidden), self._queries.view(-1, hidden)
        grad_values = sum_over_steps(self._weights, self._grad_plain).view(-1, hidden)
        context, query = grad_values.t() @ self._flat, plain.t() @ queries
        grads = {"linear_out.weight": torch.cat([context, query], dim=1)}
        if "linear_out.bias" in self._given:
            grads["linear_out.bias"] = plain.sum(0)
        grad_bank = grad_values @ self._context
        more = self._finish_keys(grad_bank)
        return grad_bank.view_as(self._bank), grads | more

    def _finish_keys(self, grad_bank: Tensor) -> dict[str, Tensor]:
        """Add the gradient through the keys to ``(rows * source, hidden)``; return the weights'."""
        grad_keys = sum_over_steps(self._grad_scores, self._queries).view_as(self._flat)
        if "linear_in.weight" not in self._given:
            grad_bank += grad_keys
            return {}
        grad_bank.addmm_(grad_keys, self._given["linear_in.weight"].t())
        return {"linear_in.weight": self._flat.t() @ grad_keys}


class AdditiveAttention(DotAttention):
    """OpenNMT-py's `mlp`: scores ``v . tanh(W_m m + W_q q)``, outputs without tanh."""

    has_tanh = False

    def _project(self) -> Tensor:
        self._matches: list[Tensor] = []
        return (self._flat @ self._given["linear_context.weight"].t()).view_as(self._bank)

    def _find_kernels(self, lengths: Tensor) -> Any:
        return None

    def _scores(self, step: int, query: Tensor) -> Tensor:
        match = torch.addmm(
            self._given["linear_query.bias"], query, self._given["linear_query.weight"].t()
        )
        match = (self._keys + match.unsqueeze(1)).tanh_()
        self._matches.append(match)
        return match @ self._given["v.weight"].view(-1)

    def start_backward(self, grad_outputs: Tensor) -> None:
        super().start_backward(grad_outputs)
        self._grad_match = torch.empty_like(self._queries)
        self._grad_keys = torch.zeros_like(self._bank)
        self._grad_v = torch.zeros_like(self._given["v.weight"])

    def _scores_backward(self, step: int, grad_scores: Tensor) -> Tensor:
        match = self._matches[step]
        flat = match.view(-1, match.size(2))
        self._grad_v.addmm_(grad_scores.view(1, -1), flat)
        grad = grad_scores.unsqueeze(2) * self._given["v.weight"]
        grad = torch.ops.aten.tanh_backward(grad, match)
        self._grad_keys += grad
        torch.sum(grad, 1, out=self._grad_match[step])
        return self._grad_match[step] @ self._given["linear_query.weight"]

    def _finish_keys(self, grad_bank: Tensor) -> dict[str, Tensor]:
        grad_keys = self._grad_keys.view_as(self._flat)
        grad_bank.addmm_(grad_keys, self._given["linear_context.weight"])
        match = self._grad_match.view(-1, grad_keys.size(1))
        return {
            "linear_context.weight": grad_keys.t() @ self._flat,
            "linear_query.weight": match.t() @ self._queries.view_as(match),
            "linear_query.bias": match.sum(0),
            "v.weight": self._grad_v,
        }
