"""Global attention for a recurrence with a derived backward pass: step by step, and back.

What the steps of a sentence share is computed once for its whole source. With context
``c = sum_j p_j m_j``, query q and attentional vector ``W [c; q]`` (Luong et al. 2015, Eq. 5),
``W_c c = sum_j p_j (W_c m_j)``: a step needs no product with W_c, only its weights p times the
projected memory. For `general` scores ``m_j . W_a q = (W_a^T m_j) . q`` likewise.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from onmt_entmax.nn.lstm.cells import Steps, tanh
from onmt_entmax.nn.products import PreparedWeight, product, weight_gradient
from onmt_entmax.sparse.functional import entmax
from onmt_entmax.sparse.jacobian import jacobian_weights, scores_gradient


class RecurrentAttention:
    """Global attention (OpenNMT-py's `GlobalAttention`) of one batch, step by step and back.

    Args:
        steps: active rows.
        bank: source vectors ``(batch, src_len, hidden)``, contiguous.
        padding: None, or ``(batch, src_len)`` with -inf at padded source positions, 0 elsewhere.
        alpha: of the mapping.
        weights: `GlobalAttention`'s parameters by name; which are there tells `dot`, `general`
            (`linear_in.weight`) and `mlp` (`v.weight`) apart.
        dtype: type of the products with weights, see `PreparedWeight`.
        queries: of all steps, packed ``(total, hidden)``; a step reads its own rows.
        asked: the same in the type of the products.

    Attributes:
        queries, asked: as given.
        additive: `mlp`, whose attentional vectors are without a tanh.
        keys, values: what queries are compared with and what is mixed, as `bank`.
        weights: of the attention, ``(steps, batch, src_len)``, zeros where a row is over.
        from_query: gives the query's share of the attentional vectors.
        to_query: on the way back, gives what comes to the query through that.
        grad_scores: on the way back, ``(steps, batch, src_len)``.
    """

    def __init__(
        self,
        steps: Steps,
        bank: Tensor,
        padding: Tensor | None,
        alpha: float,
        weights: Mapping[str, Tensor],
        dtype: torch.dtype | None,
        queries: Tensor,
        asked: Tensor,
    ) -> None:
        self._steps, self._bank, self._padding, self._alpha = steps, bank, padding, alpha
        self._given, self._dtype = weights, dtype
        hidden = bank.size(2)
        flat = bank.view(-1, hidden)
        self.additive = "v.weight" in weights
        self._context, query = weights["linear_out.weight"].split(hidden, dim=1)
        self.from_query = PreparedWeight(query, weights.get("linear_out.bias"), dtype)
        self.values = product(flat, self._context, None, dtype).view_as(bank)
        self.keys = bank
        if self.additive:
            self.keys = product(flat, weights["linear_context.weight"], None, dtype).view_as(bank)
            self._to_match = PreparedWeight(
                weights["linear_query.weight"], weights["linear_query.bias"], dtype
            )
            self._matches: list[Tensor] = []
        elif "linear_in.weight" in weights:
            self.keys = product(flat, weights["linear_in.weight"].t(), None, dtype).view_as(bank)
        self.queries, self.asked = queries, asked
        self.weights = bank.new_zeros(len(steps.sizes), steps.batch, bank.size(1))

    def step(self, step: int) -> Tensor:
        """Attentional vectors ``(rows, hidden)`` of a step."""
        rows, now = self._steps.sizes[step], self._steps.rows(step)
        query, asked = self.queries[now], self.asked[now]
        if self.additive:
            match = tanh(self.keys[:rows] + self._to_match(asked).unsqueeze(1))
            self._matches.append(match)
            scores = match @ self._given["v.weight"].view(-1)
        else:
            scores = _dots(query, self.keys[:rows])
        if self._padding is not None:
            scores += self._padding[:rows]
        weights = entmax(scores, self._alpha)
        self.weights[step, :rows] = weights
        output = _add_mixture(self.from_query(asked), weights, self.values[:rows])
        return output if self.additive else tanh(output)

    def start_backward(self, weights: Tensor) -> None:
        """Prepare what the steps back share; `weights` is `self.weights` after the last step."""
        self.weights = weights
        _, query = self._given["linear_out.weight"].split(self._bank.size(2), dim=1)
        self.to_query = PreparedWeight(query.t(), None, self._dtype)
        # The Jacobian of entmax (Peters et al. 2019, Prop. 1): diag(s) - s s^T / sum(s).
        if self._alpha <= 2:
            self._slopes = jacobian_weights(weights, self._alpha)
            sums = self._slopes.sum(dim=2, keepdim=True)
            self._shares = self._slopes / sums.masked_fill_(sums == 0, 1)  # rows that are over
        self.grad_scores = torch.zeros_like(self.weights)
        if self.additive:
            matches = self._given["linear_query.weight"].t()
            self._from_match = PreparedWeight(matches, None, self._dtype)
            self._grad_matches = torch.empty_like(self.queries)
            self._grad_keys = torch.zeros_like(self._bank)
            self._grad_v = torch.zeros_like(self._given["v.weight"])

    def step_backward(self, step: int, grad: Tensor, grad_weights: Tensor | None) -> Tensor:
        """Gradient of a step's queries.

        Args:
            step: steps come in reverse order.
            grad: of the attentional vectors before their tanh, ``(rows, hidden)``.
            grad_weights: of `weights`, ``(steps, batch, src_len)``, or None.
        """
        rows = grad.size(0)
        grad_p = _dots(grad, self.values[:rows])
        if grad_weights is not None:
            grad_p += grad_weights[step, :rows]
        if self._alpha <= 2:
            mean = torch.linalg.vecdot(self._shares[step, :rows], grad_p).unsqueeze(1)
            grad_scores = grad_p.sub_(mean).mul_(self._slopes[step, :rows])
        else:
            grad_scores = scores_gradient(self.weights[step, :rows], self._alpha, grad_p)
        self.grad_scores[step, :rows] = grad_scores
        grad_query = self.to_query(grad)
        if not self.additive:
            return _add_mixture(grad_query, grad_scores, self.keys[:rows])
        match = self._matches[step]
        self._grad_v += torch.tensordot(grad_scores, match, dims=2)
        grad_sum = torch.ops.aten.tanh_backward(
            grad_scores.unsqueeze(2) * self._given["v.weight"], match
        )
        self._grad_keys[:rows] += grad_sum
        grad_match = grad_sum.sum(dim=1)
        self._grad_matches[self._steps.rows(step)] = grad_match
        return grad_query.add_(self._from_match(grad_match))

    def finish_backward(self, grad: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Gradients that sum over all steps: one large product for each weight.

        Args:
            grad: of all attentional vectors before their tanh, packed ``(total, hidden)``.

        Returns:
            Gradient of the bank, and of the weights by name.
        """
        hidden = self._bank.size(2)
        flat = self._bank.view(-1, hidden)
        grad_values = _sum_over_steps(self.weights, self._steps.padded(grad)).view(-1, hidden)
        grad_bank = product(grad_values, self._context.t(), None, self._dtype)
        grad_context = weight_gradient(grad_values, flat, self._dtype)
        grad_query = weight_gradient(grad, self.asked, self._dtype)
        grads = {"linear_out.weight": torch.cat([grad_context, grad_query], dim=1)}
        if "linear_out.bias" in self._given:
            grads["linear_out.bias"] = grad.sum(dim=0)
        if self.additive:
            grad_keys = self._grad_keys.view(-1, hidden)
            to_bank = self._given["linear_context.weight"].t()
            grad_bank += product(grad_keys, to_bank, None, self._dtype)
            grads["linear_context.weight"] = weight_gradient(grad_keys, flat, self._dtype)
            grads["linear_query.weight"] = weight_gradient(
                self._grad_matches, self.queries, self._dtype
            )
            grads["linear_query.bias"] = self._grad_matches.sum(dim=0)
            grads["v.weight"] = self._grad_v
            return grad_bank.view_as(self._bank), grads
        queries = self._steps.padded(self.queries)
        grad_keys = _sum_over_steps(self.grad_scores, queries).view(-1, hidden)
        if "linear_in.weight" in self._given:
            grad_bank += product(grad_keys, self._given["linear_in.weight"], None, self._dtype)
            grads["linear_in.weight"] = weight_gradient(flat, grad_keys, self._dtype)
        else:
            grad_bank += grad_keys
        return grad_bank.view_as(self._bank), grads


def _dots(vectors: Tensor, bank: Tensor) -> Tensor:
    """Each row's vector ``(rows, hidden)`` against its bank: ``(rows, src_len)``.

    In this order of the factors: the other, matrix times vector, is eleven times slower in MKL.
    """
    return torch.bmm(vectors.unsqueeze(1), bank.transpose(1, 2)).squeeze(1)


def _add_mixture(start: Tensor, weights: Tensor, bank: Tensor) -> Tensor:
    """`start` ``(rows, hidden)`` plus each row's bank mixed by `weights` ``(rows, src_len)``."""
    return torch.baddbmm(start.unsqueeze(1), weights.unsqueeze(1), bank).squeeze(1)


def _sum_over_steps(weights: Tensor, vectors: Tensor) -> Tensor:
    """Sum over steps t of ``weights[t, b, j] * vectors[t, b]``: ``(batch, src_len, hidden)``."""
    return torch.bmm(weights.permute(1, 2, 0), vectors.transpose(0, 1))
