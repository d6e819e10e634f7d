"""Multi-headed attention with alpha-entmax, for OpenNMT-py's Transformer.

Source: Correia, Niculae and Martins (2019), "Adaptively Sparse Transformers". `transformer` puts it
into the layers of an encoder and a decoder.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.opennmt import MultiHeadedAttention, relative_matmul
from onmt_entmax.sparse.attention import entmax_attention, entmax_attention_weights


class EntmaxMultiHeadedAttention(MultiHeadedAttention):
    """OpenNMT-py's `MultiHeadedAttention` with alpha-entmax instead of softmax.

    Masked positions have a weight of exactly 0. With alpha 1, the results are OpenNMT-py's.

    Args:
        stock: the module that this one replaces, and whose layers it takes over.
        alpha: a number >= 1 for all heads, or the parameter `a` of learned alphas, ``(heads,)``, or
            ``(1,)`` if shared.
        returns_weights: see the attribute.

    Attributes:
        alpha: the number; None if alpha is learned.
        a: the parameter; each alpha is 1 + sigmoid(a), between softmax and sparsemax. None if alpha
            is a number.
        returns_weights: whether `forward` returns the attention weights, outside of training.
            Without them attention is faster, and the second result has no keys.
    """

    def __init__(
        self, stock: MultiHeadedAttention, alpha: float | nn.Parameter, returns_weights: bool
    ) -> None:
        # On "meta", so that layers which are replaced at once take no memory and draw no random
        # numbers.
        with torch.device("meta"):
            super().__init__(
                stock.head_count, stock.model_dim, stock.dropout.p, stock.max_relative_positions
            )
        for name, layer in stock.named_children():
            setattr(self, name, layer)
        self.alpha = None if isinstance(alpha, nn.Parameter) else alpha
        self.register_parameter("a", alpha if isinstance(alpha, nn.Parameter) else None)
        self.returns_weights = returns_weights

    def alphas(self) -> float | Tensor:
        """Return the alpha of all heads as a number, or learned alphas as a tensor ``(heads,)``."""
        if self.alpha is not None:
            return self.alpha
        return (1 + torch.sigmoid(self.a)).expand(self.head_count)

    def forward(
        self,
        key: Tensor,
        value: Tensor,
        query: Tensor,
        mask: Tensor | None = None,
        layer_cache: dict[str, Any] | None = None,
        attn_type: str | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend; argument names and shapes are OpenNMT-py's.

        Args:
            key: ``(batch, keys, dim)``.
            value: ``(batch, keys, dim)``.
            query: ``(batch, queries, dim)``.
            mask: true where a query does not attend, ``(batch, queries or 1, keys)``.
            layer_cache: keys and values of earlier steps, for stepwise decoding; extended in place.
            attn_type: "self" or "context", attention to the target or to the source.

        Returns:
            Context vectors ``(batch, queries, dim)``, and weights ``(batch, heads, queries, keys)``
            or, without weights, ``(batch, 1, queries, 0)``.
        """
        keys, values = self._keys_and_values(key, value, layer_cache, attn_type)
        queries = self._split(self.linear_query(query))
        attended = None if mask is None else ~mask.unsqueeze(1)
        if self.max_relative_positions > 0 and attn_type == "self":
            context, weights = self._relative(queries, keys, values, attended)
        elif self.returns_weights and not self.training:
            weights = entmax_attention_weights(
                queries, keys, alpha=self.alphas(), attn_mask=attended
            )
            context = weights.to(values.dtype) @ values
        else:
            dropout = self.dropout.p if self.training else 0.0
            context = entmax_attention(
                queries, keys, values, alpha=self.alphas(), attn_mask=attended, dropout_p=dropout
            )
            weights = context.new_empty(context.size(0), 1, context.size(2), 0)
        return self.final_linear(context.transpose(1, 2).flatten(2)), weights

    def _keys_and_values(
        self,
        key: Tensor,
        value: Tensor,
        cache: dict[str, Any] | None,
        attn_type: str | None,
    ) -> tuple[Tensor, Tensor]:
        """Return projected keys and values ``(batch, heads, keys, size)``.

        A cache keeps those of earlier steps: the source is projected in the first step only, and
        the keys and values of new target positions are appended. The cache is changed in place.

        Args:
            key: ``(batch, keys, dim)``.
            value: ``(batch, keys, dim)``.
            cache: keys and values of earlier steps, or None; see :meth:`forward`.
            attn_type: "self" or "context".
        """
        if cache is not None and attn_type == "context" and cache["memory_keys"] is not None:
            return cache["memory_keys"], cache["memory_values"]
        keys, values = self._split(self.linear_keys(key)), self._split(self.linear_values(value))
        if cache is None:
            return keys, values
        if attn_type == "context":
            cache["memory_keys"], cache["memory_values"] = keys, values
            return keys, values
        if cache["self_keys"] is not None:
            keys = torch.cat((cache["self_keys"], keys), 2)
            values = torch.cat((cache["self_values"], values), 2)
        cache["self_keys"], cache["self_values"] = keys, values
        return keys, values

    def _split(self, projected: Tensor) -> Tensor:
        """Return ``(batch, heads, length, size)`` of ``(batch, length, heads * size)``."""
        return projected.unflatten(2, (self.head_count, self.dim_per_head)).transpose(1, 2)

    def _relative(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attended: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Attend with relative positions (Shaw et al. 2018), which add to scores and values.

        Args:
            queries: queries at the last positions, ``(batch, heads, queries, size)``.
            keys: ``(batch, heads, keys, size)``.
            values: ``(batch, heads, keys, size)``.
            attended: true where a query attends, ``(batch, 1, queries or 1, keys)``, or None.

        Returns:
            Context vectors ``(batch, heads, queries, size)``, and weights before dropout
            ``(batch, heads, queries, keys)``.
        """
        position = torch.arange(keys.size(2), device=keys.device)
        farthest = self.max_relative_positions
        distances = position - position[-queries.size(2) :].unsqueeze(1)  # (queries, keys)
        relations = self.relative_positions_embeddings(
            distances.clamp(-farthest, farthest) + farthest
        )  # (queries, keys, size)
        added = relative_matmul(queries / math.sqrt(self.dim_per_head), relations, transpose=True)
        if attended is not None:
            added = torch.where(attended, added, -torch.inf)
        weights = entmax_attention_weights(queries, keys, alpha=self.alphas(), attn_mask=added)
        used = self.dropout(weights).to(values.dtype)
        return used @ values + relative_matmul(used, relations, transpose=False), weights

    def extra_repr(self) -> str:
        """Return alpha, for printing."""
        if self.alpha is not None:
            return f"alpha={self.alpha:g}"
        return "learned alpha" + (", shared" if self.a.numel() < self.head_count else "")
