"""Global attention inside the decoder's recurrence, with a derived backward pass.

`RecurrentAttention` attends; `Readout` turns its results into the decoder's outputs, which the next
step is fed. Both run one step at a time, forward and backward.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from onmt_entmax.nn.lstm.cells import Steps, tanh
from onmt_entmax.nn.products import PreparedWeight, product, weight_gradient
from onmt_entmax.sparse.backends import backend_for
from onmt_entmax.sparse.functional import entmax


class RecurrentAttention:
    """Global attention (OpenNMT-py's `GlobalAttention`) over the steps of one batch.

    Whatever depends on the source alone is computed once. For a context vector
    ``c = sum_j p_j m_j``, a query q and the attentional vector ``tanh(W_c c + W_q q)`` (Luong et
    al. 2015, Eq. 5), ``W_c c = sum_j p_j (W_c m_j)``: a step multiplies the projected memory by
    its weights p, and needs no product with W_c. Likewise, the scores of `general` attention are
    ``m_j . W_a q = (W_a^T m_j) . q``.

    Args:
        steps: active rows.
        bank: source vectors ``(batch, src_len, hidden)``, contiguous.
        padding: ``(batch, src_len)`` with -inf at padded source positions and 0 elsewhere, or None.
        alpha: of the mapping.
        parameters: `GlobalAttention`'s by name; their names tell `dot`, `general`
            (`linear_in.weight`) and `mlp` (`v.weight`) apart.
        dtype: of the products with parameters, see `PreparedWeight`.
        queries: of all steps, packed ``(total, hidden)``; each step reads its own rows.
        cast_queries: the same in the type of the products.

    Attributes:
        additive: whether this is `mlp` attention, whose attentional vectors have no tanh.
        keys: what queries are compared with, ``(batch, src_len, hidden)``.
        values: what the context vectors are sums of, ``(batch, src_len, hidden)``.
        weights: attention ``(steps, batch, src_len)``, zeros where a row has ended.
        from_query: multiplies queries by W_q.
        to_query: its transpose, in the backward pass.
        grad_scores: in the backward pass, ``(steps, batch, src_len)``.
    """

    def __init__(
        self,
        steps: Steps,
        bank: Tensor,
        padding: Tensor | None,
        alpha: float,
        parameters: Mapping[str, Tensor],
        dtype: torch.dtype | None,
        queries: Tensor,
        cast_queries: Tensor,
    ) -> None:
        self._steps, self._bank, self._padding, self.alpha = steps, bank, padding, alpha
        self._parameters, self._dtype = parameters, dtype
        self._product = partial(product, dtype=dtype)
        self._weight_gradient = partial(weight_gradient, dtype=dtype)
        hidden = bank.size(2)
        flat = bank.view(-1, hidden)
        self.additive = "v.weight" in parameters
        self._context, query = parameters["linear_out.weight"].split(hidden, dim=1)
        self.from_query = PreparedWeight(query, parameters.get("linear_out.bias"), dtype)
        self.values = self._product(flat, self._context).view_as(bank)
        self.keys = bank
        if self.additive:
            to_keys = parameters["linear_context.weight"]
            self.keys = self._product(flat, to_keys).view_as(bank)
            self._to_match = PreparedWeight(
                parameters["linear_query.weight"], parameters["linear_query.bias"], dtype
            )
            self._matches: list[Tensor] = []
        elif "linear_in.weight" in parameters:
            to_keys = parameters["linear_in.weight"].t()
            self.keys = self._product(flat, to_keys).view_as(bank)
        self.queries, self.cast_queries = queries, cast_queries
        self.weights = bank.new_zeros(len(steps.sizes), steps.batch, bank.size(1))

    def step(self, step: int) -> Tensor:
        """Return the attentional vectors ``(rows, hidden)`` of a step."""
        rows, now = self._steps.sizes[step], self._steps.rows(step)
        query, cast_query = self.queries[now], self.cast_queries[now]
        if self.additive:
            match = tanh(self.keys[:rows] + self._to_match(cast_query).unsqueeze(1))
            self._matches.append(match)
            scores = match @ self._parameters["v.weight"].view(-1)
        else:
            scores = dots(query, self.keys[:rows])
        if self._padding is not None:
            scores += self._padding[:rows]
        weights = entmax(scores, self.alpha)
        self.weights[step, :rows] = weights
        output = add_context(self.from_query(cast_query), weights, self.values[:rows])
        return output if self.additive else tanh(output)

    def start_backward(self, weights: Tensor) -> None:
        """Prepare the backward pass; `weights` is `self.weights` after the last step."""
        self.weights = weights
        _, query = self._parameters["linear_out.weight"].split(self._bank.size(2), dim=1)
        self.to_query = PreparedWeight(query.t(), dtype=self._dtype)
        self.grad_scores = torch.zeros_like(self.weights)
        if self.additive:
            matches = self._parameters["linear_query.weight"].t()
            self._from_match = PreparedWeight(matches, dtype=self._dtype)
            self._grad_matches = torch.empty_like(self.queries)
            self._grad_keys = torch.zeros_like(self._bank)
            self._grad_v = torch.zeros_like(self._parameters["v.weight"])

    def step_backward(self, step: int, grad: Tensor, grad_weights: Tensor | None) -> Tensor:
        """Return the gradient of a step's queries ``(rows, hidden)``.

        Args:
            step: steps come in reverse order.
            grad: of the attentional vectors before their tanh, ``(rows, hidden)``.
            grad_weights: of `weights`, ``(steps, batch, src_len)``, or None.
        """
        rows = grad.size(0)
        grad_p = dots(grad, self.values[:rows])
        if grad_weights is not None:
            grad_p += grad_weights[step, :rows]
        weights = self.weights[step, :rows]
        backend = backend_for(weights, self.alpha, grad_p)
        grad_scores = backend.scores_gradient(weights, self.alpha, grad_p, weights.dtype)
        self.grad_scores[step, :rows] = grad_scores
        grad_query = self.to_query(grad)
        if not self.additive:
            return add_context(grad_query, grad_scores, self.keys[:rows])
        match = self._matches[step]
        self._grad_v += torch.tensordot(grad_scores, match, dims=2)
        grad_sum = torch.ops.aten.tanh_backward(
            grad_scores.unsqueeze(2) * self._parameters["v.weight"], match
        )
        self._grad_keys[:rows] += grad_sum
        grad_match = grad_sum.sum(dim=1)
        self._grad_matches[self._steps.rows(step)] = grad_match
        return grad_query.add_(self._from_match(grad_match))

    def finish_backward(self, grad: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return gradients that sum over all steps, each by one large product.

        Args:
            grad: of all attentional vectors before their tanh, packed ``(total, hidden)``.

        Returns:
            Gradient of the bank, and of the parameters by name.
        """
        hidden = self._bank.size(2)
        flat = self._bank.view(-1, hidden)
        grad_values = sum_over_steps(self.weights, self._steps.padded(grad)).view(-1, hidden)
        grad_bank = self._product(grad_values, self._context.t())
        grad_context = self._weight_gradient(grad_values, flat)
        grad_query = self._weight_gradient(grad, self.cast_queries)
        grads = {"linear_out.weight": torch.cat([grad_context, grad_query], dim=1)}
        if "linear_out.bias" in self._parameters:
            grads["linear_out.bias"] = grad.sum(dim=0)
        if self.additive:
            grad_keys = self._grad_keys.view(-1, hidden)
            to_bank = self._parameters["linear_context.weight"].t()
            grad_bank += self._product(grad_keys, to_bank)
            grads["linear_context.weight"] = self._weight_gradient(grad_keys, flat)
            grads["linear_query.weight"] = self._weight_gradient(self._grad_matches, self.queries)
            grads["linear_query.bias"] = self._grad_matches.sum(dim=0)
            grads["v.weight"] = self._grad_v
            return grad_bank.view_as(self._bank), grads
        queries = self._steps.padded(self.queries)
        grad_keys = sum_over_steps(self.grad_scores, queries).view(-1, hidden)
        if "linear_in.weight" in self._parameters:
            to_bank = self._parameters["linear_in.weight"]
            grad_bank += self._product(grad_keys, to_bank)
            grads["linear_in.weight"] = self._weight_gradient(flat, grad_keys)
        else:
            grad_bank += grad_keys
        return grad_bank.view_as(self._bank), grads


def dots(vectors: Tensor, bank: Tensor) -> Tensor:
    """Return each row's vector ``(rows, hidden)`` times its bank: ``(rows, src_len)``.

    The other order, matrix times vector, is eleven times slower in MKL.
    """
    return torch.bmm(vectors.unsqueeze(1), bank.transpose(1, 2)).squeeze(1)


def add_context(start: Tensor, weights: Tensor, bank: Tensor) -> Tensor:
    """Return `start` ``(rows, hidden)`` plus each row's ``sum_j weights[j] * bank[j]``."""
    return torch.baddbmm(start.unsqueeze(1), weights.unsqueeze(1), bank).squeeze(1)


def sum_over_steps(weights: Tensor, vectors: Tensor) -> Tensor:
    """Sum over steps t of ``weights[t, b, j] * vectors[t, b]``: ``(batch, src_len, hidden)``."""
    return torch.bmm(weights.permute(1, 2, 0), vectors.transpose(0, 1))


class Readout:
    """From the top layer's states to the outputs: attention and dropout, in PyTorch operations.

    Args:
        steps: active rows.
        attention: of the batch.
        factors: dropout of the attentional vectors, ``(total, hidden)``, or None.
        fed: receives the outputs that are fed, ``(rows, hidden)``, packed by the step they enter.

    Attributes:
        attentional: attentional vectors, packed ``(total, hidden)``.
        outputs: these times the dropout factors.
    """

    def __init__(
        self, steps: Steps, attention: RecurrentAttention, factors: Tensor | None, fed: Tensor
    ) -> None:
        self._steps, self._attention = steps, attention
        self._factors, self._fed = factors, fed
        self.attentional = attention.weights.new_empty(steps.total, fed.size(1))
        self.outputs = self.attentional if factors is None else torch.empty_like(self.attentional)

    def forward(self, step: int) -> None:
        """Compute a step's outputs, and feed them to the next step."""
        rows = self._steps.rows(step)
        self.attentional[rows] = self._attention.step(step)
        if self._factors is not None:
            torch.mul(self.attentional[rows], self._factors[rows], out=self.outputs[rows])
        if step + 1 < len(self._steps.sizes):
            following = self._steps.rows(step + 1)
            going_on = following.stop - following.start
            self._fed[following] = self.outputs[rows][:going_on]

    def end(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs, attentional vectors and attention, and drop the references to them.

        The graph holds this object and the results hold the graph: a reference from here to the
        results would be a cycle that is never freed.
        """
        results = self.outputs, self.attentional, self._attention.weights
        self.outputs = self.attentional = self._attention.weights = self._fed
        return results

    def start_backward(
        self, attentional: Tensor, attention: Tensor, grad: Tensor, grad_attention: Tensor | None
    ) -> None:
        """Prepare the backward pass.

        Args:
            attentional: as `end` returned it.
            attention: likewise.
            grad: gradient of the outputs, ``(total, hidden)``; becomes that of the attentional
                vectors before their tanh.
            grad_attention: gradient of the attention, or None.
        """
        self._grad, self._grad_attention = grad, grad_attention
        self._derivative = self._factors
        if not self._attention.additive:
            ones = torch.ones_like(attentional) if self._factors is None else self._factors
            self._derivative = torch.ops.aten.tanh_backward(ones, attentional)
        self._attention.start_backward(attention)

    def backward(self, step: int, fed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Compute the gradient of a step; the last step comes first.

        Args:
            step: its number.
            fed: gradient of what the next step was fed, ``(rows, hidden)``, or None.

        Returns:
            Gradient of the queries ``(rows, hidden)``, and None or a second part to be added.
        """
        rows = self._steps.rows(step)
        grad = self._grad[rows]
        if fed is not None:
            grad[: fed.size(0)] += fed
        if self._derivative is not None:
            grad *= self._derivative[rows]
        return self._attention.step_backward(step, grad, self._grad_attention), None

    def finish_backward(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Return gradients of the source vectors, and of the attention's parameters by name."""
        bank, parameters = self._attention.finish_backward(self._grad)
        self._attention.weights = self._fed
        return bank, parameters
