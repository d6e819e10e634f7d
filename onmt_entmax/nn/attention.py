"""Global attention with alpha-entmax, the attention of recurrent decoders.

A decoder calls the layer in each step; without input feeding, once for all steps. For `dot` and
`general`, `recurrence/` does not call it: it projects the source once, with `project`, and its
steps read keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.nn.products import linear
from onmt_entmax.opennmt import GlobalAttention, sequence_mask
from onmt_entmax.sparse import entmax


class Projection(NamedTuple):
    """What all steps of attention to the same source share.

    With scores ``keys_j . q`` and their weights p_j, the attentional vector of a query q is
    ``tanh(sum_j p_j values_j + query_weight q)``.

    Attributes:
        keys: ``(batch, src_len, dim)``.
        values: ``(batch, src_len, dim)``.
        query_weight: W_q ``(dim, dim)``.
    """

    keys: Tensor
    values: Tensor
    query_weight: Tensor


class EntmaxGlobalAttention(GlobalAttention):
    """OpenNMT-py's `GlobalAttention` with alpha-entmax instead of softmax.

    Scores and projections are inherited (Luong et al. 2015: `dot`, `general`; Bahdanau et al. 2015:
    `mlp`). The weights are alpha-entmax of the scores (Peters et al. 2019, Eq. 10): exactly zero at
    irrelevant source positions, and at padding. A subclass may define its own ``score``.

    Args:
        dim: size of queries and source vectors.
        attn_type: "dot", "general" or "mlp".
        alpha: the alpha of entmax: 1 is softmax, 2 is sparsemax.
    """

    def __init__(self, dim: int, attn_type: str = "general", alpha: float = 1.5) -> None:
        super().__init__(dim, attn_type=attn_type)
        self.alpha = alpha

    def forward(
        self,
        source: Tensor,
        memory_bank: Tensor,
        memory_lengths: Tensor | None = None,
        coverage: None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend to the source; argument names and shapes are OpenNMT-py's.

        Args:
            source: queries, ``(batch, dim)`` for one step or ``(batch, tgt_len, dim)``.
            memory_bank: source vectors, ``(batch, src_len, dim)``.
            memory_lengths: ``(batch,)``; positions beyond get weight zero. None: all are real.
            coverage: must be None.

        Returns:
            Attentional vectors and weights: ``(batch, dim)`` and ``(batch, src_len)`` for one
            step, else ``(tgt_len, batch, dim)`` and ``(tgt_len, batch, src_len)``.
        """
        assert coverage is None, "no configuration of this package has coverage attention"
        queries = source.unsqueeze(1) if source.dim() == 2 else source
        scores = self.score(queries, memory_bank)  # (batch, tgt_len, src_len)
        if memory_lengths is not None:
            mask = sequence_mask(memory_lengths, max_len=scores.size(-1)).unsqueeze(1)
            scores = scores.masked_fill(~mask, -float("inf"))
        weights = entmax(scores, self.alpha, dim=-1)
        context = weights @ memory_bank  # (batch, tgt_len, dim)
        output = self.linear_out(torch.cat([context, queries], dim=2))
        if self.attn_type != "mlp":
            output = torch.tanh(output)
        if source.dim() == 2:
            return output.squeeze(1), weights.squeeze(1)
        return output.transpose(0, 1).contiguous(), weights.transpose(0, 1).contiguous()

    def extra_repr(self) -> str:
        """Return type and alpha, for printing."""
        return f"{self.attn_type}, alpha={self.alpha:g}"

    @property
    def can_project(self) -> bool:
        """Whether keys and values of :meth:`project` give the same results as :meth:`forward`.

        They do for OpenNMT-py's `dot` and `general`. Other types, and subclasses with their own
        scores or forward pass, run step by step.
        """
        return (
            self.attn_type in ("dot", "general")
            and _is_method(self.score, GlobalAttention.score)
            and _is_method(self.forward, EntmaxGlobalAttention.forward)
        )

    def project(self, bank: Tensor, dtype: torch.dtype | None = None) -> Projection:
        """Compute what all steps of `dot` or `general` attention to the same source share.

        Let m_j be the source vectors, q a query, p_j its weights, and ``c = sum_j p_j m_j`` its
        context vector. The attentional vector is ``tanh(W_c c + W_q q)`` (Luong et al. 2015,
        Eq. 5). Since ``W_c c = sum_j p_j (W_c m_j)``, a step needs no product with W_c if the
        values are ``W_c m_j``. Likewise, the scores of `general` are ``m_j . W_a q``, which is
        ``(W_a^T m_j) . q``.

        Args:
            bank: source vectors ``(batch, src_len, dim)``, contiguous.
            dtype: the type of the factors of products, see `product`.

        Raises:
            ValueError: if `can_project` is false.
        """
        if not self.can_project:
            raise ValueError(f"scores of {type(self).__name__} ({self.attn_type}) are no products")
        context_weight, query_weight = self.linear_out.weight.split(self.dim, dim=1)
        rows = bank.flatten(0, 1)  # (batch * src_len, dim)
        keys = bank
        if self.attn_type == "general":
            keys = linear(rows, self.linear_in.weight.t(), None, dtype).view_as(bank)
        values = linear(rows, context_weight, None, dtype).view_as(bank)
        return Projection(keys, values, query_weight)


def _is_method(method: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """Return whether a bound method is this function, not one of a subclass or of an object."""
    return getattr(method, "__func__", None) is function


ATTENTIONS: dict[str, type[EntmaxGlobalAttention]] = {
    "dot": EntmaxGlobalAttention,
    "general": EntmaxGlobalAttention,
    "mlp": EntmaxGlobalAttention,
}
"""The class of each `global_attention`, whose arguments are size, type and alpha.

OpenNMT-py's three types share one class. Another type has a class of its own, and a line here: see
docs/first-change.md.
"""
